"""The base of what commands print with `-o json` and `-o yaml`: values with a documented shape.

docs/reference/views.md lists the kinds, and docs/reference/views/ has their JSON Schemas. Fields are added; within a
version, none is changed or removed.
"""

from typing import Annotated, Any

import msgspec

from altershield.api.resources import GROUP
from altershield.api.schema import extra
from kube_base.times import rfc3339

VERSION = f"view.{GROUP}/v1"
"""The `apiVersion` of all documents. They are no objects of the Kubernetes API."""


Time = Annotated[str, extra(format="date-time")]
"""A time in the format of Kubernetes: `2026-08-21T07:29:49Z`."""


class Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of a document. No field has a default: all are printed always."""


class Document(Part, frozen=True, tag_field="kind", tag=True):
    """What one command prints. Its `kind` is the name of the class."""


def data(document: Document) -> dict[str, Any]:
    """The document as JSON or YAML has it."""
    made: dict[str, Any] = msgspec.to_builtins(document)
    return {"apiVersion": VERSION, **made}


def time(at: float) -> str | None:
    """Unix seconds in the format of Kubernetes; 0 means that the time is not known."""
    return rfc3339(at) if at else None
