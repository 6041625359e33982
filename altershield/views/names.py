"""Names and texts of objects, as they are shown."""

from collections.abc import Mapping
from typing import Annotated, Any

from altershield.api.schema import doc
from altershield.views.document import Part
from altershield.workloads import BY_KIND
from kube_base.resources import GroupKind, Resource

_VERSION_DIGITS = 12


class WorkloadName(Part, frozen=True):
    """A workload."""

    api_version: Annotated[str, doc("Its apiVersion.")]
    kind: Annotated[str, doc("Its kind.")]
    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]

    def __str__(self) -> str:
        """As an argument of a command: `deployment/web`."""
        return f"{self.kind.lower()}/{self.name}"


def workload_of(resource: Resource, namespace: str, name: str) -> WorkloadName:
    return WorkloadName(resource.api_version, resource.kind, namespace, name)


def resource_name(resource: Resource, name: str) -> str:
    """`KIND.GROUP/NAME` in lower case, as kubectl prints objects of several types: `deployment.apps/web`."""
    return _name(resource.kind, resource.group, name)


def object_name(obj: Mapping[str, Any]) -> str:
    """The `resource_name` of an object of the API."""
    return _name(obj["kind"], obj["apiVersion"].rpartition("/")[0], obj["metadata"]["name"])


def _name(kind: str, group: str, name: str) -> str:
    return f"{f'{kind.lower()}.{group}'.removesuffix('.')}/{name}"


def short_version(version: str) -> str:
    """The beginning of a version, as tables and sentences show it."""
    return version[:_VERSION_DIGITS]


def workload_name(kind: GroupKind, name: str) -> str:
    """The `resource_name` of a workload."""
    return resource_name(BY_KIND[kind].resource, name)


def printable(text: str) -> str:
    """Without control characters, which must not reach the terminal: users write the messages of verdicts."""
    return "".join(c if c.isprintable() else " " for c in text)
