"""One registration: which handler is asked about which requests."""

from dataclasses import dataclass
from enum import StrEnum

from altershield.api.resources import Resource


class Phase(StrEnum):
    """Mutating webhooks are called first and may patch; validating webhooks see the final object."""

    MUTATE = "mutate"
    VALIDATE = "validate"


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Condition:
    """API servers call the webhook only for requests for which the CEL expression is true. An empty expression is
    always true."""

    name: str
    expression: str


ALWAYS = Condition("always", "")


@dataclass(frozen=True, slots=True)
class Registration:
    """One handler for some operations on some resources."""

    handler: str
    """Where the handler is, below `gatekeeper/handlers/`: `releases.version:stamp`."""
    phase: Phase
    resources: tuple[Resource, ...]
    operations: tuple[Operation, ...]
    subresource: str = ""
    condition: Condition = ALWAYS
    does_io: bool = False
    """Whether the handler is asynchronous and calls out. The handler must then do nothing on a dry run."""
