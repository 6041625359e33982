"""Patches that say what changed, and nothing more."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from reconciler.machinery.writer import label_path, merge_patch

VALUES = st.integers(0, 3) | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES)


@given(old=OBJECTS, new=OBJECTS)
def test_a_merge_patch_turns_the_old_into_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(old, new)

    merged = {name: value for name, value in {**old, **patch}.items() if value is not None}
    assert merged == new
    assert patch.keys() == {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def test_label_keys_are_escaped_in_pointers() -> None:
    assert label_path(labels.SUSPEND) == "/metadata/labels/altershield.defense.antgroup.com~1suspend"
    assert label_path("a/b~c") == "/metadata/labels/a~1b~0c"
