"""Releases in steps of the Deployment `sleep`, and what is seen of them by kubectl."""

import json
from collections import Counter
from typing import Any

from altershield.api.annotations import ROLLOUT
from altershield.api.resources import API_VERSION
from tests.e2e.sleep import VERSION, sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

USER = "kubernetes-admin"
RESTS = 4.0  # seconds in which a rollout that does not rest would go on


def policy(kubectl: Kubectl, rollout: Json, *, probe: str = sleep(image="probe"), **rules: Any) -> None:
    """Make a policy, and wait until the gatekeepers know it. `probe`: a manifest that would be released by it."""
    spec = {"rollout": rollout, **rules}
    kubectl.apply(
        json.dumps({"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "steps"}, "spec": spec})
    )

    def is_known() -> bool:
        done = kubectl.run("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=probe)
        if done.returncode:
            return False
        known = json.loads(json.loads(done.stdout)["metadata"]["annotations"].get(ROLLOUT, "{}"))
        return bool(rollout.items() <= known.get("rollout", {}).items())

    eventually(is_known, "the gatekeepers to know the policy")


def rolling(unavailable: int | str, surge: int | str) -> Json:
    """A user's own strategy."""
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}


def rollout(kubectl: Kubectl, version: str) -> Json:
    """`status.rollout` of a version."""
    found: Json = kubectl.json("changeworkload", f"sleep--x--{version}")["status"].get("rollout", {})
    return found


def state(kubectl: Kubectl, version: str) -> str:
    return str(kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["status"])


def reach(kubectl: Kubectl, version: str, step: int, phase: str) -> None:
    """Wait until the release has come to this phase of the step."""
    kubectl.wait(f"changeworkload/sleep--x--{version}", "create")

    def there() -> bool:
        found = rollout(kubectl, version)
        return (found.get("step"), found.get("phase")) == (step, phase)

    eventually(there, f"{phase} of step {step}")


def request(kubectl: Kubectl, version: str, verb: str) -> None:
    """Ask for an action on the release, as kubectl users do."""
    asked = {"status": {"request": {"verb": verb, "by": USER, "reason": "a test"}}}
    name = f"changeworkload/sleep--x--{version}"
    kubectl("patch", name, "--subresource=status", "--type=merge", "-p", json.dumps(asked))


def apply(kubectl: Kubectl, manifest: str) -> str:
    kubectl.apply(manifest)
    return kubectl.labels("deployment", "sleep")[VERSION]


def pods_by_version(kubectl: Kubectl) -> dict[str, int]:
    """How many pods have which version. Those that are terminating do not count, as for their controller."""
    found = (each["metadata"] for each in kubectl.json("pods", "-l", "app=sleep")["items"])
    return dict(Counter(each["labels"][VERSION] for each in found if "deletionTimestamp" not in each))


def without_template(workload: Json) -> Json:
    return {key: value for key, value in workload["spec"].items() if key != "template"}
