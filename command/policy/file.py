"""Reads the DefensePolicies of a file."""

from typing import Any

from altershield.api.names import is_name
from altershield.api.resources import DEFENSE_POLICIES
from command import manifests
from kube_base.errors import UsageError

Object = dict[str, Any]


def read(file: str) -> list[Object]:
    """The DefensePolicies of a file, or of stdin (`-`). UsageError: it cannot be read, or has other objects."""
    found = manifests.read(file, f"a {DEFENSE_POLICIES.kind}")
    for each in found:
        _demand_policy(file, each)
    return found


def _demand_policy(file: str, obj: Any) -> None:
    wanted = (DEFENSE_POLICIES.api_version, DEFENSE_POLICIES.kind)
    if not isinstance(obj, dict) or (obj.get("apiVersion"), obj.get("kind")) != wanted:
        kind = str(obj.get("kind") or "an object without kind") if isinstance(obj, dict) else "no object"
        raise UsageError(f"{file} has {kind}; only {wanted[1]} of {wanted[0]} can be checked")
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not is_name(name):
        raise UsageError(f"a {wanted[1]} in {file} has no valid metadata.name")
    namespace = metadata.get("namespace", "") if isinstance(metadata, dict) else ""
    if not isinstance(namespace, str) or (namespace and not is_name(namespace)):
        raise UsageError(f"the {wanted[1]} {name} in {file} has no valid metadata.namespace")
