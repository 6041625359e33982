"""Fields of a pod template that a rollback brought back and that a later release still has, although its manifest may
not have them. Pure functions.

Clients like Helm 3 compare their manifest with the last one that they sent: that of the version that was rolled back.
This version had removed the fields already, so the client does not remove them again.

A path names a field of the template as `spec.containers[app].env[LEGACY]`. Elements of a list are named by the field by
which Kubernetes merges the list. Lists without such a field are one value.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from altershield.api import labels
from altershield.api.change_workload import MAX_RESTORED
from altershield.gates.fields.list_keys import MERGE_KEYS, element_name, step

Object = dict[str, Any]

_OWN = {labels.VERSION, *labels.NOT_IN_TEMPLATES}
_MAX_PATH = 256  # characters


def restored_paths(older: Object, failed: Object) -> tuple[str, ...]:
    """The paths that the template `older` has and `failed` lacks; of nested paths only the outermost, and not more than
    a status stores."""
    there = set(_paths(failed))
    found: list[str] = []
    for path in _paths(older):
        below_last = found and path.startswith((f"{found[-1]}.", f"{found[-1]}["))
        # two elements of a list may have the same name
        if path not in there and path not in found and not below_last and len(path) <= _MAX_PATH:
            found.append(path)
            if len(found) == MAX_RESTORED:
                break
    return tuple(found)


def leftovers(paths: Iterable[str], template: Object, manifest: Object | None) -> tuple[str, ...]:
    """The `paths` that a template has and its manifest lacks. `manifest`: the template in the manifest of the client;
    None if the client does not store it."""
    there = set(_paths(template)) - (set(_paths(manifest)) if manifest is not None else set())
    return tuple(path for path in paths if path in there)


def text(failed_version: str, paths: Iterable[str]) -> str:
    """What is left, in one sentence."""
    return (
        f"the pod template still has fields that version {failed_version} had removed and that its rollback brought "
        f"back: {', '.join(paths)}"
    )


def _paths(value: Any, path: str = "", field: str = "") -> Iterator[str]:
    """All paths of a template, each before the paths below it."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key in _OWN or below is None:
                continue
            here = path + step(key) if path else step(key).removeprefix(".")
            yield here
            yield from _paths(below, here, key)
    elif isinstance(value, list) and field in MERGE_KEYS:
        for element in value:
            if isinstance(element, dict):
                name = element_name(field, element)
                yield f"{path}[{name}]"
                yield from _paths(element, f"{path}[{name}]")
