"""Reads the objects of a file."""

import sys
from pathlib import Path
from typing import Any

import yaml

from kube_base.errors import UsageError

Object = dict[str, Any]

MAX_FILE = 3_000_000
"""Bytes of a file: the API server takes no larger object."""


def read(file: str, wanted: str) -> list[Any]:
    """The objects of a file, or of stdin (`-`), as they are. `wanted`: what the file should have, for errors.
    UsageError: it cannot be read, or has no object."""
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
        raise UsageError(f"{file} has no object; name a file with {wanted}")
    return found


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as opened:
        return opened.read(MAX_FILE + 1)


def _items(document: Any) -> list[Any]:
    """The objects of a document: those of a list, or the one that it is."""
    items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
    return items if isinstance(items, list) else [document]
