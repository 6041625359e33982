"""The syntax of paths: what the CRD admits by its pattern, and what the parser refuses with advice."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.field_guards import PATH
from altershield.gates.fields.paths import Elements, Member, PathError, parse


def test_the_parts_of_a_path() -> None:
    assert parse("spec.containers[*].resources.limits[nvidia.com/gpu]") == (
        Member("spec"), Member("containers"), Elements(), Member("resources"), Member("limits"),
        Member("nvidia.com/gpu", in_brackets=True),
    )  # fmt: skip
    assert parse("spec.volumes[name=data].emptyDir")[2] == Elements("name", "data")
    assert parse("metadata.labels.env") == (Member("metadata"), Member("labels"), Member("env"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.template.spec.containers[*]", "remove spec.template"),
        ("spec.containers.image", "containers is a list"),
        ("spec", "name a field below spec"),
        ("containers[*]", "begins with spec or metadata"),
        ("spec.containers[", "] is missing"),
        ("spec.containers[]", "write [*], [name=VALUE] or [KEY]"),
        ("spec.containers[=x]", "write [*], [name=VALUE] or [KEY]"),
        ("spec.containers[name=]", "write [*], [name=VALUE] or [KEY]"),
        ("spec.containers[1x=a]", "1x is no name"),
        ("spec.containers[*]image", "after ], write"),
        ("spec..image", "nothing is no name"),
        ("spec.a-b", "a-b is no name"),
        ("spec.", "nothing is no name"),
        ("", "begins with"),
        ("spec" + ".a" * 16, "at most 16 parts"),
    ],
)
def test_the_parser_says_what_to_write_instead(path: str, message: str) -> None:
    with pytest.raises(PathError, match=re.escape(message)):
        parse(path)


_PARTS = st.sampled_from(
    ["spec", "metadata", ".a", ".containers", "[*]", "[name=x]", "[a/b]", "[a=b=c]", ".", "[", "]", "=", "*", "ä"]
)


@given(st.lists(_PARTS, max_size=8).map("".join))
def test_what_the_parser_reads_the_pattern_admits_too(path: str) -> None:
    problem = ""
    try:
        parse(path)
    except PathError as error:
        problem = str(error)
    advised = any(each in problem for each in ("is a list", "parts", "remove spec.template"))
    assert (re.fullmatch(PATH, path) is not None) is (not problem or advised)
