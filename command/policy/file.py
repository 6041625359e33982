"""Reads the DefensePolicies of a file."""

import sys
from pathlib import Path
from typing import Any

import yaml

from altershield.api.names import is_name
from altershield.api.resources import DEFENSE_POLICIES
from kube_base.errors import UsageError

Object = dict[str, Any]

MAX_FILE = 3_000_000
"""Bytes of a file: the API server takes no larger object."""


def read(file: str) -> list[Object]:
    """The DefensePolicies of a file, or of stdin (`-`). UsageError: it cannot be read, or has other objects."""
    try:
        text = sys.stdin.read(MAX_FILE + 1) if file == "-" else _read(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read {file}: {reason}") from None
    if len(text) > MAX_FILE:
        raise UsageError(f"{file} has more than {MAX_FILE} characters")
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    found = [item for each in documents for item in _items(each)]
    if not found:
        raise UsageError(f"{file} has no object; name a file with a {DEFENSE_POLICIES.kind}")
    for each in found:
        _demand_policy(file, each)
    return found


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as opened:
        return opened.read(MAX_FILE + 1)


def _items(document: Any) -> list[Any]:
    """The objects of a document: those of a list, or the one that it is."""
    items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
    return items if isinstance(items, list) else [document]


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
