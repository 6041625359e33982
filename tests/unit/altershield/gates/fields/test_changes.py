"""The fields that differ, in random templates, against a slow and obvious search of both."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.gates.fields.changes import Fields, TooMuchWorkError
from altershield.gates.fields.paths import Elements, Member, Path, parse
from altershield.gates.fields.values import ABSENT, default, normal

# the API server admits no number in place of a truth value, which Python takes for equal
_LEAVES = st.none() | st.booleans() | st.integers(2, 3) | st.sampled_from(["a", "1Gi", "1024Mi", ""])
_DNS = st.sampled_from(["ClusterFirst", "None"])
_MAPS = st.dictionaries(st.sampled_from(["x", "y", "a/b", "limits", "memory"]), _LEAVES, max_size=3)
_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc")},
        optional={"image": _LEAVES, "resources": st.dictionaries(st.just("limits"), _MAPS), "args": st.lists(_LEAVES)},
    ),
    max_size=3,
    unique_by=lambda each: str(each["name"]),
)
_TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.none() | st.fixed_dictionaries({"labels": _MAPS}),
        "spec": st.fixed_dictionaries(
            {"containers": _CONTAINERS},
            optional={
                "dnsPolicy": _DNS,
                "nodeSelector": _MAPS,
                "hostNetwork": _LEAVES,
            },
        ),
    },
)
_PATHS = st.lists(
    st.sampled_from(
        [
            "spec.containers",
            "spec.containers[*]",
            "spec.containers[name=b]",
            "spec.containers[b].image",
            "spec.containers[*].resources",
            "spec.containers[*].resources.limits[*]",
            "spec.containers[*].resources.limits.memory",
            "spec.dnsPolicy",
            "spec.hostNetwork",
            "spec.nodeSelector[a/b]",
            "metadata.labels",
            "metadata.labels[*]",
            "metadata.labels[name=a]",
        ]
    ).map(parse),
    min_size=1,
    max_size=6,
)


def search(value: Any, path: Path, names: tuple[str, ...] = (), here: str = "") -> Iterator[tuple[str, Any]]:
    """All fields of a path, and their values without what means nothing."""
    if not path:
        yield here, normal(value, names)
        return
    part, rest = path[0], path[1:]
    members = value if isinstance(value, dict) else {}
    elements = value if isinstance(value, list) else []
    if isinstance(part, Elements):
        for key, each in members.items() if not part.field else ():
            yield from search(each, rest, (*names, key), f"{here}[{key}]" if "/" in key else f"{here}.{key}")
        for each in elements:
            if part.field in ("", "name") and part.value in ("", each["name"]):
                yield from search(each, rest, names, f"{here}[{each['name']}]")
    elif isinstance(part, Member) and elements:
        for each in elements:
            if each["name"] == part.name:
                yield from search(each, rest, names, f"{here}[{part.name}]")
    elif isinstance(value, dict):
        below = (*names, part.name)
        step = f"[{part.name}]" if "/" in part.name else f".{part.name}" if here else part.name
        found = members.get(part.name)
        yield from search(default(below) if found is None else found, rest, below, here + step)


@given(_TEMPLATES, _TEMPLATES, _PATHS)
def test_fields_that_differ_are_those_that_a_search_of_both_templates_finds(
    old: dict[str, Any], new: dict[str, Any], paths: list[Path]
) -> None:
    fields = Fields(old, new)
    for path in paths:
        before, after = (
            {name: value for name, value in search(each, path) if value is not ABSENT} for each in (old, new)
        )
        expected = {name for name in {**before, **after} if before.get(name, ABSENT) != after.get(name, ABSENT)}
        assert {each.path for each in fields.changed(path)} == expected


@pytest.mark.parametrize(
    ("path", "work"),
    [
        ("spec.hostNetwork", 4),  # two fields down, and both values
        ("metadata.labels", 8),  # the maps with two members each
        ("metadata.labels[*]", 10),
        ("spec.containers[*]", 16),
    ],
)
def test_each_value_that_is_compared_is_work_up_to_the_bound(path: str, work: int) -> None:
    old, new = (
        {
            "metadata": {"labels": {"a": one, "b": one}},
            "spec": {"hostNetwork": one, "containers": [{"name": "app", "args": [one, {"x": one}]}]},
        }
        for one in ("1", "2")
    )
    assert Fields(old, new, work).changed(parse(path))
    with pytest.raises(TooMuchWorkError):
        Fields(old, new, work - 1).changed(parse(path))
