"""The JSON Schemas of what commands print, from the types."""

import json
from typing import Any

import msgspec

from altershield.views.document import VERSION, Document

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(document: type[Document]) -> Schema:
    """The schema of a document. It allows no other fields, and each field has to be there."""
    _, parts = msgspec.json.schema_components([document], ref_template="#/$defs/{name}")
    own = parts.pop(document.__name__)
    head = {"apiVersion": {"const": VERSION}, "kind": {"const": document.__name__}}
    return {
        "$schema": _DRAFT,
        **own,
        "properties": {**head, **{name: each for name, each in own["properties"].items() if name != "kind"}},
        "required": ["apiVersion", *own["required"]],
        **({"$defs": parts} if parts else {}),
    }


def text(document: type[Document]) -> str:
    return json.dumps(schema(document), indent=2, ensure_ascii=False) + "\n"
