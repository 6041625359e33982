"""The images by which people know a version."""

import msgspec
import pytest

from altershield.images import Images, images_in, images_of, named, short

DIGEST = "sha256:" + "4f53cda18c2baa0c" * 4


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", "nginx"),
        ("nginx:1.27", "nginx:1.27"),
        ("registry.example:5000/team/web:2.3", "web:2.3"),
        ("registry.example:5000/team/web", "web"),
        (f"registry.example/web@{DIGEST}", "web@4f53cda18c2b"),
        (f"registry.example/web:2.3@{DIGEST}", "web:2.3"),
        ("", ""),
        ("@", "@"),
        ("web:\x1b[31m", "web: [31m"),
        (f"web:{'9' * 200}", f"web:{'9' * 73}…"),
    ],
)
def test_image_is_shown_by_its_name_and_its_tag_or_else_its_digest(image: str, expected: str) -> None:
    assert short(image) == expected


@pytest.mark.parametrize(
    ("images", "before", "text"),
    [
        ((), (), ""),
        ((("web", "web:2"),), (("web", "web:1"),), "web:2"),
        ((("a", "a:1"), ("b", "b:2"), ("c", "c:1")), (), "a:1,b:2 +1"),
        ((("a", "a:1"), ("b", "b:2"), ("c", "c:1")), (("a", "a:1"), ("b", "b:1"), ("c", "c:1")), "b:2,a:1 +1"),
        ((("a", "a:1"), ("b", "a:1")), (), "a:1"),
        ((("a", "a:1"), ("new", "n:1")), (("a", "a:1"), ("gone", "g:1")), "n:1,a:1"),
        (tuple((f"c{n}", f"i:{n}") for n in range(16)), (), "i:0,i:1 +14"),
    ],
)
def test_text_has_the_changed_images_first_and_counts_the_others(images: Images, before: Images, text: str) -> None:
    assert named(images, before) == text


def test_images_are_those_of_the_containers_without_init_containers() -> None:
    spec = {"initContainers": [{"name": "init", "image": "i:1"}], "containers": [{"name": "web", "image": "web:2"}]}
    assert images_of({"spec": spec}) == images_in(msgspec.json.encode(spec)) == (("web", "web:2"),)


@pytest.mark.parametrize(
    "spec", [None, {}, [], {"containers": None}, {"containers": [3]}, {"containers": [{"name": "web", "image": 3}]}]
)
def test_template_that_nobody_checked_has_no_images(spec: object) -> None:
    assert images_of({"spec": spec}) == images_in(msgspec.json.encode(spec)) == ()


@pytest.mark.parametrize("spec", [b"", b"{", b'{"containers": [{"name": "\x80"}]}', b"[" * 100_000])
def test_spec_that_is_no_json_has_no_images(spec: bytes) -> None:
    assert images_in(spec) == ()


def test_equal_images_are_one_object_and_their_number_is_bounded() -> None:
    spec = {"containers": [{"name": f"c{n}", "image": "web:2"} for n in range(200)]}
    first, second = (images_in(msgspec.json.encode(spec)) for _ in range(2))
    assert first is second
    assert len(first) == 16
