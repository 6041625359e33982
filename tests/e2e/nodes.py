"""Simulated nodes of one test. Its pods are on no other nodes, and no other pods are on these."""

import json
import uuid
from collections.abc import Mapping

from tests.support.kubectl import Json, Kubectl

_KUBELET = "sandbox.altershield.io/kubelet"


class Nodes:
    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._label = f"nodes-{uuid.uuid4().hex[:8]}"
        self.names: list[str] = []

    @property
    def pod(self) -> Json:
        """The fields of the spec of the pods."""
        return {"nodeSelector": {"nodes": self._label}, "tolerations": [{"key": "nodes", "operator": "Exists"}]}

    def add(self, number: int = 1, labels: Mapping[str, str] | None = None) -> list[str]:
        """Returns the names of the new nodes."""
        added = [f"{self._label}-{len(self.names) + each}" for each in range(number)]
        for name in added:
            metadata = {
                "name": name,
                "labels": {"nodes": self._label, **(labels or {})},
                "annotations": {_KUBELET: "up"},
            }
            spec = {"taints": [{"key": "nodes", "effect": "NoSchedule"}]}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}
            self._kubectl("create", "-f", "-", stdin=json.dumps(node))
        self.names += added
        for name in added:
            self._kubectl.wait(f"node/{name}", "condition=Ready")
        return added

    def label(self, name: str, labels: Mapping[str, str]) -> None:
        pairs = (f"{key}={value}" for key, value in labels.items())
        self._kubectl("label", "node", name, "--overwrite", *pairs)

    def break_(self, name: str) -> None:
        self._kubectl("annotate", "node", name, "--overwrite", f"{_KUBELET}=not-ready")
        self._kubectl.wait(f"node/{name}", "condition=Ready=False")

    def lose(self, name: str) -> None:
        """Its kubelet does not answer any more. A cluster needs about a minute to notice that."""
        self._kubectl("annotate", "node", name, "--overwrite", f"{_KUBELET}=down")
        self._kubectl.wait(f"node/{name}", "condition=Ready=Unknown")

    def repair(self, name: str) -> None:
        self._kubectl("annotate", "node", name, "--overwrite", f"{_KUBELET}=up")
        self._kubectl.wait(f"node/{name}", "condition=Ready")

    def delete(self) -> None:
        if self.names:
            self._kubectl.run("delete", "node", "--ignore-not-found", "--wait=false", *self.names)
