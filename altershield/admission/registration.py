"""Registrations: the requests for which each handler is called."""

from dataclasses import dataclass
from enum import StrEnum

from kube_base.resources import Resource


class Phase(StrEnum):
    """The API server calls mutating webhooks first. They may patch the object. Validating webhooks get the result."""

    MUTATE = "mutate"
    VALIDATE = "validate"


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Feature(StrEnum):
    """The feature that a webhook serves. It determines the namespaces from which API servers send requests, and the
    failure policy while no gatekeeper answers (`command/install/webhooks.py`)."""

    RELEASES = "releases"
    DELETIONS = "deletions"
    PODS = "pods"
    BUDGETS = "budgets"


@dataclass(frozen=True, slots=True)
class Condition:
    """A match condition: the API server calls the webhook only if the CEL expression is true. An empty expression is
    always true."""

    name: str
    expression: str


ALWAYS = Condition("always", "")


@dataclass(frozen=True, slots=True)
class Registration:
    """One handler for some operations on some resources."""

    handler: str
    """The module below `gatekeeper/handlers/` and the name of the handler: `releases.version:stamp`."""
    phase: Phase
    resources: tuple[Resource, ...]
    operations: tuple[Operation, ...]
    subresource: str = ""
    condition: Condition = ALWAYS
    feature: Feature = Feature.RELEASES
    """The same for all handlers of a webhook."""
    does_io: bool = False
    """Whether the handler is asynchronous and does I/O. On a dry run it must change nothing."""
