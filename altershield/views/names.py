"""Names and texts of objects, as they are shown."""

from altershield.workloads import BY_KIND
from kube_base.resources import GroupKind, Resource


def resource_name(resource: Resource, name: str) -> str:
    """`KIND.GROUP/NAME` in lower case, as kubectl prints objects of several types: `deployment.apps/web`."""
    return f"{f'{resource.kind.lower()}.{resource.group}'.removesuffix('.')}/{name}"


def workload_name(kind: GroupKind, name: str) -> str:
    """The `resource_name` of a workload."""
    return resource_name(BY_KIND[kind].resource, name)


def printable(text: str) -> str:
    """Without control characters, which must not reach the terminal: users write the messages of verdicts."""
    return "".join(c if c.isprintable() else " " for c in text)
