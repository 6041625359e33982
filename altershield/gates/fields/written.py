"""What releases wrote to guarded fields, as ChangeWorkloads keep it. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from altershield.api.change_workload import MAX_WRITTEN, MAX_WRITTEN_VALUES, Written
from altershield.api.released_by import ReleasedBy
from altershield.gates.fields.changes import Fields, TooMuchWorkError
from altershield.gates.fields.paths import Path
from altershield.gates.fields.values import kept

_MAX_PATH = 256  # characters


def written(paths: Mapping[str, Path], template: Mapping[str, Any], by: ReleasedBy) -> Written:
    """The values of these paths in a released template. Paths with too many values are left out."""
    fields = Fields(None, template)
    known: list[str] = []
    values: dict[str, str] = {}
    for text, path in sorted(paths.items()):
        try:
            found = {each.path: kept(each.new, each.names) for each in fields.changed(path)}
        except TooMuchWorkError:
            break
        merged = {**values, **found}
        if len(merged) <= MAX_WRITTEN_VALUES and all(len(each) <= _MAX_PATH for each in found):
            values = merged
            known.append(text)
        if len(known) == MAX_WRITTEN_VALUES:
            break
    return Written(by.user, by.manager, by.time, tuple(known), values)


def followed(before: Sequence[Written], releaser: tuple[str, str], new: Written | None) -> tuple[Written, ...]:
    """The entries after a release. `new`: None, if its values are not known: then an older entry of the same releaser
    is not its last release any more."""
    others = [each for each in before if each.releaser != releaser]
    return (*((new,) if new is not None else ()), *others)[:MAX_WRITTEN]
