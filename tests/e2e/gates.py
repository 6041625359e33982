"""Freezes and overrides of tests, and what gatekeepers say about a release meanwhile."""

import json
from typing import Any

from altershield.api.resources import API_VERSION
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

USER = "kubernetes-admin"
REASON = "the fix of incident 7"


def freeze(name: str = "incident", **spec: Any) -> str:
    spec = {"reason": "incident 7", "requestedBy": USER, **spec}
    return json.dumps({"apiVersion": API_VERSION, "kind": "ReleaseFreeze", "metadata": {"name": name}, "spec": spec})


def known(kubectl: Kubectl, manifest: str, *, closed: bool = True) -> str:
    """Wait until the gatekeepers know that the release of the manifest is denied, or is not. Returns their text."""

    def answer() -> str:
        done = kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=manifest)
        return done.stderr if done.returncode else ""

    eventually(lambda: bool(answer()) is closed, "the gatekeepers to know the gate")
    return answer()


def override(namespace: str, name: str = "fix", **spec: Any) -> Json:
    spec = {
        "reason": REASON,
        "requestedBy": USER,
        "target": {"kind": "Deployment", "name": "sleep"},
        "gates": ["Freeze"],
        **spec,
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "ReleaseOverride", "metadata": metadata, "spec": spec}


def uses(kubectl: Kubectl, name: str = "fix") -> list[Json]:
    return list(kubectl.json("releaseoverride", name)["status"].get("uses", []))
