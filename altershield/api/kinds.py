"""What is declared about each of our kinds in addition to its type. The CustomResourceDefinitions follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from altershield.api.condition_types import ConditionType
from kube_base.resources import Resource


class Column(NamedTuple):
    """A column of `kubectl get`. A column that is not `wide` shows a field that is required or has a default, so that
    no cell is blank."""

    name: str
    type: str
    path: str
    """A JSONPath, such as `.spec.mode`."""
    wide: bool = False
    """Whether only `kubectl get -o wide` shows it."""


AGE = Column("AGE", "date", ".metadata.creationTimestamp")

NOT_PROCESSED = [
    {
        "type": ConditionType.ACCEPTED.value,
        "status": "Unknown",
        "reason": "Pending",
        "message": "AlterShield has not processed the object yet",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
]
"""The conditions of a new object that is accepted or rejected."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One of our kinds."""

    resource: Resource
    type: type
    short_name: str
    title: str
    """In catalogues of charts, as is `summary`."""
    summary: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """JSONPaths of fields for `kubectl get --field-selector`, such as `.status.status`: strings, booleans or integers,
    at most 8. Kubernetes 1.31 is the first version that selects by them."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The defaults of fields of `status` that columns show. A new object has them before a reconciler has processed
    it."""
    states: tuple[str, ...] = ()
    """The values of `status.status` of a kind whose objects only AlterShield creates; empty for other kinds."""
    nullable: bool = True
    """Whether optional fields of the spec accept a stored null. For rules of the schema, it would be a field that is
    set."""
