"""The sentence about a request that the API server answered with 403."""

import re

from kube_base.access.errors import ForbiddenError

_MISSING = re.compile(
    r"User \"[^\"]*\" cannot \w+ (?:resource|path) |attempting to grant RBAC permissions not currently held"
)


def is_missing(error: Exception | str) -> bool:
    """Whether the error or its text says that the user lacks a permission. Otherwise a webhook or an admission
    policy refuses the request."""
    return _MISSING.search(str(error)) is not None


def refused(attempt: str, error: ForbiddenError, ask_for: str) -> str:
    """The message of an error. `attempt`: what the command cannot do, with the object: `list Pods in namespace "shop"`.
    `ask_for`: the permission that allows it."""
    advice = f"; ask for {ask_for}" if is_missing(error) else ""
    return f"cannot {attempt}: {error}{advice}"


def role(name: str, namespace: str) -> str:
    """A ClusterRole, and where it has to be bound."""
    return f"the ClusterRole {name} {place(namespace)}"


def place(namespace: str) -> str:
    """A namespace in a sentence. An empty one means all namespaces."""
    return f'in namespace "{namespace}"' if namespace else "in all namespaces"
