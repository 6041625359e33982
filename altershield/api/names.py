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
_VERSION_DIGITS = 32
_ROOM = _MAX_NAME - 2 * len(_SEPARATOR) - _VERSION_DIGITS - _BATCH_DIGITS
_DIGEST_DIGITS = 32  # 128 bits: nobody finds two names with the same


def service_account_user(namespace: str = SYSTEM_NAMESPACE, name: str = SERVICE_ACCOUNT) -> str:
    """The user name under which the API server knows a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def is_version(label: str) -> bool:
    """Whether a version label's value can be one: a user may have written another while no gate was there."""
    return re.fullmatch("[0-9a-f]{32}", label) is not None


def change_workload_name(prefix: str, workload: str, version: str, *, taken: bool = False) -> str:
    """`{prefix}{workload}--x--{version}`; the prefix tells kinds of workloads apart.

    The part before the version is cut and hashed where it would exceed 202 characters (room is kept for a ChangePod's
    number), and where it is `taken`: where a workload of another kind could have the same. A part that is hashed has
    exactly 203 characters, one that is not has less: so no two workloads share a name.
    """
    own = f"{prefix}{workload}"
    if taken or len(own) >= _ROOM:
        digest = hashlib.sha256(f"{prefix}/{workload}".encode()).hexdigest()[:_DIGEST_DIGITS]
        kept = own[: _ROOM - _DIGEST_DIGITS - 1].rstrip("-.")
        own = f"{kept}-{digest:0>{_ROOM - len(kept) - 1}}"
    return f"{own}{_SEPARATOR}{version}"


def version_of(change_workload: str) -> str:
    """The version in a ChangeWorkload's name, which nobody can change as they could its label."""
    return change_workload.rpartition(_SEPARATOR)[2]


def change_pod_name(change_workload: str, number: int | str) -> str:
    """`{change workload}--x--{number}`, numbers from 1. Documentation gives a placeholder instead of a number."""
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
    if len(workload) <= _MAX_LABEL_VALUE:
        return workload
    digest = hashlib.sha256(workload.encode()).hexdigest()[:10]
    return f"{workload[: _MAX_LABEL_VALUE - 11].rstrip('-.')}-{digest}"
