import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.fingerprint import Template, canonical, fingerprint
from gatekeeper.errors import ReviewError
from gatekeeper.handlers.releases.version import new_version
from tests.unit.gatekeeper import reviews

_decode = msgspec.json.Decoder(Template).decode


def version(template: Any) -> str:
    return fingerprint(canonical(_decode(json.dumps(template).encode())))


# The versions of these templates must never change: rollbacks after an upgrade depend on them.
GOLDEN = {
    "the walkthrough's": (
        {
            "metadata": {"labels": {"app": "sleep"}},
            "spec": {
                "containers": [
                    {
                        "name": "sleep",
                        "image": "busybox",
                        "command": ["/bin/sleep", "infinity"],
                        "imagePullPolicy": "IfNotPresent",
                    }
                ]
            },
        },
        "cd03b71cc5587bd8373cb81919a4769f",
    ),
    "empty": ({}, "cba26b3d9827e676b694c42a7c1fee64"),
    "numbers": (
        {"spec": {"a": 0, "b": -1, "c": 9223372036854775807, "d": 1.5, "e": True, "f": None}},
        "9e539c991e658d2199e9c32c1860afeb",
    ),
    "other scripts": (
        {"metadata": {"annotations": {"名": 'é \u0000 \U0001f600 / \\ " \u2028'}}},
        "83ce8be2d76b084294445d778d40fa0b",
    ),
    "empty objects": (
        {"spec": {"securityContext": {}, "volumes": [{"name": "a", "emptyDir": {}}]}},
        "7216f857cd945fc64827c0bc05d9d2e6",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_versions_of_known_templates_never_change(name: str) -> None:
    template, expected = GOLDEN[name]
    assert version(template) == expected


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
templates = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(st.text("ab/~.", min_size=1), st.text("xy", max_size=3), max_size=3),
                "annotations": st.dictionaries(st.text("ab", min_size=1), st.text(), max_size=3),
                "creationTimestamp": st.none(),
            },
        ),
        "spec": st.dictionaries(st.text("abc", min_size=1), json_values, max_size=4),
    },
)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(templates)
def test_version_ignores_the_order_of_keys(template: Any) -> None:
    old, new = (_decode(json.dumps(t).encode()) for t in (template, reordered(template)))
    assert canonical(old) == canonical(new)


@given(templates)
def test_version_ignores_white_space_and_escapes(template: Any) -> None:
    plain = json.dumps(template, ensure_ascii=False, separators=(",", ":")).encode()
    escaped = json.dumps(template, ensure_ascii=True, indent=3).encode()
    assert canonical(_decode(escaped)) == canonical(_decode(plain))


@given(templates)
def test_unchanged_template_is_no_release(template: Any) -> None:
    old, new = (_decode(json.dumps(template).encode()) for _ in range(2))
    assert new_version(new, old) == ""


@given(templates, templates)
def test_release_has_the_version_of_the_new_template(one: Any, other: Any) -> None:
    old, new = (_decode(json.dumps(template).encode()) for template in (one, other))
    assert new_version(new, old) in {"", fingerprint(canonical(new))}
    assert new_version(new, old) or canonical(new) == canonical(old)
    assert new_version(new, None) == fingerprint(canonical(new))


@given(templates, templates)
def test_different_templates_have_different_versions(one: Any, other: Any) -> None:
    forms = [canonical(_decode(json.dumps(template).encode())) for template in (one, other)]
    assert (fingerprint(forms[0]) == fingerprint(forms[1])) == (forms[0] == forms[1])


@given(templates, st.text("0123456789abcdef", max_size=32))
def test_version_ignores_the_version_label(template: Any, label: str) -> None:
    metadata = template.get("metadata") or {}
    labelled = {**metadata, "labels": {**(metadata.get("labels") or {}), labels.VERSION: label}}
    assert version({**template, "metadata": labelled}) == version(template)


@pytest.mark.parametrize(
    "same",
    [
        {"metadata": {}},
        {"metadata": None},
        {"metadata": {"labels": {}}},
        {"metadata": {"labels": None, "annotations": None}},
        {"metadata": {"creationTimestamp": None}},
        {"metadata": {"creationTimestamp": None, "labels": {labels.VERSION: "x"}, "annotations": {}}},
    ],
)
def test_absent_null_and_empty_metadata_have_the_same_version(same: Any) -> None:
    assert version({**same, "spec": {"a": 1}}) == version({"spec": {"a": 1}})


def test_empty_and_absent_selector_have_different_versions() -> None:
    term = {"topologyKey": "zone"}
    assert version({"spec": {"terms": [term]}}) != version({"spec": {"terms": [{**term, "namespaceSelector": {}}]}})


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0, False), ("1", 1), (None, False)])
def test_values_that_are_equal_in_python_but_not_in_json_have_different_versions(pair: tuple[Any, Any]) -> None:
    old, new = ({"spec": {"a": value}} for value in pair)
    assert new_version(_decode(json.dumps(new).encode()), _decode(json.dumps(old).encode())) == version(new)


def test_template_with_a_changed_label_is_a_release() -> None:
    old, new = ({"metadata": {"labels": {"app": "a", "v": value}}} for value in "12")
    assert new_version(_decode(json.dumps(new).encode()), _decode(json.dumps(old).encode())) == version(new)


@pytest.mark.parametrize("spec", [b"[" * 300 + b"]" * 300, b"[" * 900 + b"]" * 900, b"123456789012345678901234567890"])
def test_template_without_canonical_form_is_refused(spec: bytes) -> None:
    template = _decode(b'{"spec": {"a": %s}}' % spec)
    if spec.startswith(b"["):
        with pytest.raises(ReviewError, match="pod template"):
            new_version(template, None)
    else:
        assert new_version(template, None)  # read as a float, as everything past 64 bits


def test_walkthrough_deployment_has_one_version_in_both_places() -> None:
    assert len(reviews.version_of(reviews.deployment())) == 32


@pytest.mark.parametrize("value", [b"1e999", b'"\xff"'])
def test_template_that_only_one_json_decoder_accepts_is_refused(value: bytes) -> None:
    template = _decode(b'{"spec":{"a":' + value + b"}}")
    with pytest.raises(ReviewError, match="cannot be read"):
        new_version(template, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"annotations": {labels.VERSION: "a"}}, {"annotations": {labels.VERSION: "b"}}),
        ({"annotations": {labels.SUSPEND: "a"}}, {}),
        ({"name": ""}, {}),
        ({"finalizers": []}, {}),
    ],
)
def test_annotations_and_empty_fields_change_the_version(one: Any, other: Any) -> None:
    assert version({"metadata": one}) != version({"metadata": other})
