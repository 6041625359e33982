"""Names of the objects that AlterShield creates, and the rule that shortens long names."""

import hashlib
import re

SYSTEM_NAMESPACE = "altershieldoperator-system"
SERVICE_ACCOUNT = "altershield"
CHECK_ACCOUNT = "altershield-check"
"""The service account of the pod of `helm test`."""
LEASE = "altershield-reconciler"
"""The Lease in the system namespace that the leading reconciler holds."""

_SEPARATOR = "--x--"
_MAX_NAME = 253  # RFC 1123 subdomain, the limit of metadata.name
_MAX_LABEL_VALUE = 63
_BATCH_DIGITS = 8
_VERSION_DIGITS = 32
_ROOM = _MAX_NAME - 2 * len(_SEPARATOR) - _VERSION_DIGITS - _BATCH_DIGITS
_DIGEST_DIGITS = 32  # 128 bits, so that nobody can construct two names with the same digest


def never_governed(system_namespace: str = SYSTEM_NAMESPACE) -> tuple[str, ...]:
    """The namespaces in which AlterShield never acts, whatever their labels are."""
    return ("kube-system", system_namespace)


def service_account_user(namespace: str = SYSTEM_NAMESPACE, name: str = SERVICE_ACCOUNT) -> str:
    """The user name under which the API server knows a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def is_name(text: str) -> bool:
    """Whether a Kubernetes object can have this name. (The lengths of its parts are not checked.)"""
    return re.fullmatch("[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text) is not None


def is_version(label: str) -> bool:
    """Whether a value of the version label is a fingerprint. Users can write other values while no gatekeeper runs."""
    return re.fullmatch("[0-9a-f]{32}", label) is not None


def change_workload_name(prefix: str, workload: str, version: str, *, taken: bool = False) -> str:
    """`{prefix}{workload}--x--{version}`. The prefix stands for the kind of the workload.

    The part before the version is cut and hashed in two cases: if it has more than 202 characters (the rest is for a
    ChangePod's number), and if it is `taken`: a workload of another kind can then have the same part. A hashed part has
    exactly 203 characters, other parts have fewer. So the names of two workloads are never equal.
    """
    own = f"{prefix}{workload}"
    if taken or len(own) >= _ROOM:
        digest = hashlib.sha256(f"{prefix}/{workload}".encode()).hexdigest()[:_DIGEST_DIGITS]
        kept = own[: _ROOM - _DIGEST_DIGITS - 1].rstrip("-.")
        own = f"{kept}-{digest:0>{_ROOM - len(kept) - 1}}"
    return f"{own}{_SEPARATOR}{version}"


def version_in(change_workload: str) -> str:
    """The version in a ChangeWorkload's name. Unlike the label, nobody can change the name."""
    return change_workload.rpartition(_SEPARATOR)[2]


def change_pod_name(change_workload: str, number: int | str) -> str:
    """`{change workload}--x--{number}`. Numbers begin with 1. For the documentation, `number` is a placeholder."""
    return f"{change_workload}{_SEPARATOR}{number}"


def change_workload_of(change_pod: str) -> str:
    """The name of the ChangeWorkload in a ChangePod's name."""
    return change_pod.rpartition(_SEPARATOR)[0]


def change_pod_number(name: str) -> int:
    """The number at the end of a ChangePod's name; 0 if there is none."""
    tail = name.rpartition(_SEPARATOR)[2]
    return int(tail) if tail.isascii() and tail.isdigit() and len(tail) <= _BATCH_DIGITS else 0


def label_value(workload: str) -> str:
    """A workload's name as a label value: unchanged up to 63 characters, otherwise cut and hashed."""
    if len(workload) <= _MAX_LABEL_VALUE:
        return workload
    digest = hashlib.sha256(workload.encode()).hexdigest()[:10]
    return f"{workload[: _MAX_LABEL_VALUE - 11].rstrip('-.')}-{digest}"


INSTALLED = {
    "app.kubernetes.io/name": "altershield",
    "app.kubernetes.io/part-of": "altershield",
    "app.kubernetes.io/component": "gate",
}
"""The labels of the objects that are installed for the gatekeeper, and for the reconciler beside it."""
