"""The entries of `metadata.managedFields`: managers, their fields and times.

Decoding, encoding and the order of entries follow apimachinery, pkg/util/managedfields.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kube_sandbox.apiserver import gotext
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.patch import field_sets
from kube_sandbox.apiserver.patch.field_sets import Fields

APPLY, UPDATE = "Apply", "Update"
_MAX_UPDATERS = 10
_OLDEST = "ancient-changes"


class Manager(NamedTuple):
    """The identity of an entry. `api_version` is empty for Apply, because an applier has one entry for all versions."""

    name: str
    operation: str
    api_version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields of a manager, the API version that it used last, and the time of its last change (may be empty)."""

    fields: Fields
    api_version: str
    time: str = ""


Managed = dict[Manager, Owned]


def identify(name: str, operation: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", operation, "" if operation == APPLY else api_version, subresource)


def decode(entries: Any) -> Managed:
    """The managers in a `managedFields` list. Raises ValueError when an entry is malformed."""
    managed: Managed = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        match entry.get("fieldsType"):
            case "FieldsV1":
                pass
            case None | "":
                raise ValueError(f"missing fieldsType in managed fields entry {index}")
            case wrong:
                raise ValueError(f'invalid fieldsType "{wrong}" in managed fields entry {index}')
        manager = Manager(
            entry.get("manager") or "", operation, "" if operation == APPLY else version, entry.get("subresource") or ""
        )
        managed[manager] = Owned(field_sets.decode(entry.get("fieldsV1") or {}), version, entry.get("time") or "")
    return managed


def encode(managed: Managed) -> list[Object]:
    """The `managedFields` list. Appliers come first; the order is then by time and name."""
    ordered = sorted(
        managed.items(), key=lambda found: (found[0].operation, found[1].time, found[0].name, found[1].api_version,
                                            found[0].subresource)
    )  # fmt: skip
    return [_entry(manager, owned) for manager, owned in ordered]


def _entry(manager: Manager, owned: Owned) -> Object:
    entry: Object = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encode(owned.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def limit_updaters(managed: Managed) -> Managed:
    """The managers with at most ten updaters. The oldest updaters are merged into one per API version."""
    updaters = sorted(
        (manager for manager in managed if manager.operation == UPDATE),
        key=lambda manager: (managed[manager].time, manager),
    )
    excess = len(updaters) - _MAX_UPDATERS
    result, first = dict(managed), {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = managed[manager]
        bucket = identify(_OLDEST, UPDATE, owned.api_version, "")
        if owned.api_version not in first:
            first[owned.api_version] = manager
            continue
        if bucket not in result:
            result[bucket] = result.pop(first[owned.api_version])
        result[bucket] = Owned(result[bucket].fields | owned.fields, owned.api_version, owned.time)
        result.pop(manager, None)
        excess -= 1
    return result


def conflict_details(conflicts: Mapping[Manager, Fields]) -> tuple[str, Object]:
    """The message and the details of a 409: the fields and the managers that own them."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager_text(manager)}",
            "field": field_sets.text(path),
        }
        for manager in sorted(conflicts)
        for path in field_sets.in_conflict_order(conflicts[manager])
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [line for manager in sorted(conflicts) for line in _conflict_lines(manager, conflicts[manager])]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return message, {"causes": causes}


def _conflict_lines(manager: Manager, fields: Fields) -> Iterable[str]:
    yield f"conflicts with {_manager_text(manager)}:"
    yield from (f"- {field_sets.text(path)}" for path in field_sets.in_conflict_order(fields))


def _manager_text(manager: Manager) -> str:
    text = gotext.quoted(manager.name)
    if manager.subresource:
        text += f" with subresource {gotext.quoted(manager.subresource)}"
    return f"{text} using {manager.api_version}" if manager.operation == UPDATE else text
