"""Names of the objects AlterShield makes, and how long names are cut."""

import hashlib
import re

SYSTEM_NAMESPACE = "altershieldoperator-system"
SERVICE_ACCOUNT = "altershield"
LEASE = "altershield-reconciler"
"""In the system namespace: which reconciler leads."""

_SEPARATOR = "--x--"
_MAX_NAME = 253  # RFC 1123 subdomain, the limit of metadata.name
_MAX_LABEL_VALUE = 63
_BATCH_DIGITS = 8


def service_account_user(namespace: str = SYSTEM_NAMESPACE, name: str = SERVICE_ACCOUNT) -> str:
    """The user name under which the API server knows a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def is_version(label: str) -> bool:
    """Whether a version label's value can be one: a user may have written another while no gate was there."""
    return re.fullmatch("[0-9a-f]{32}", label) is not None


def change_workload_name(workload: str, version: str) -> str:
    """`{workload}--x--{version}`, the workload's part cut and hashed where the whole would exceed 253
    characters (room is kept for a ChangePod's number)."""
    room = _MAX_NAME - 2 * len(_SEPARATOR) - len(version) - _BATCH_DIGITS
    return f"{_cut(workload, room)}{_SEPARATOR}{version}"


def version_of(change_workload: str) -> str:
    """The version in a ChangeWorkload's name, which nobody can change as they could its label."""
    return change_workload.rpartition(_SEPARATOR)[2]


def change_pod_name(change_workload: str, number: int) -> str:
    """`{change workload}--x--{number}`, numbers from 1."""
    return f"{change_workload}{_SEPARATOR}{number}"


def change_workload_of(change_pod: str) -> str:
    """The name of the ChangeWorkload in a ChangePod's name."""
    return change_pod.rpartition(_SEPARATOR)[0]


def change_pod_number(name: str) -> int:
    """The number at the end of a ChangePod's name; 0 where there is none."""
    tail = name.rpartition(_SEPARATOR)[2]
    return int(tail) if tail.isascii() and tail.isdigit() and len(tail) <= _BATCH_DIGITS else 0


def label_value(workload: str) -> str:
    """A workload's name as a label value: unchanged up to 63 characters, else cut and hashed."""
    return _cut(workload, _MAX_LABEL_VALUE)


def _cut(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: room - 11].rstrip('-.')}-{digest}"
