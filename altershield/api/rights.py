"""Permissions: rules of a ClusterRole or Role."""

from dataclasses import dataclass
from typing import Any

from kube_base.resources import Resource

APPROVE = "approve"
"""The verb on ChangeWorkloads that a user needs to promote a step with `approval`."""

OVERRIDE = "override"
"""The verb on ReleaseOverrides in AlterShield's namespace that a user needs to pass gates of that namespace."""


@dataclass(frozen=True)
class Right:
    """A rule about one or several resources of one API group."""

    resources: tuple[Resource, ...]
    verbs: str
    """Separated by spaces."""
    subresource: str = ""
    names: tuple[str, ...] = ()
    """The names of the objects; empty: all."""
    why: str = ""
    """Shown as a comment in the chart."""

    @property
    def rule(self) -> dict[str, Any]:
        """The rule (rbac.authorization.k8s.io/v1)."""
        below = f"/{self.subresource}" if self.subresource else ""
        (group,) = {resource.group for resource in self.resources}
        names = {"resourceNames": list(self.names)} if self.names else {}
        plurals = [f"{resource.plural}{below}" for resource in self.resources]
        return {"apiGroups": [group], "resources": plurals, "verbs": self.verbs.split(), **names}
