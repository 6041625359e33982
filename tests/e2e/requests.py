"""Requests of people about a release, by plain kubectl, and the answers to them."""

import json

from tests.support.kubectl import Json, Kubectl


def actions(kubectl: Kubectl, version: str) -> list[Json]:
    found: list[Json] = kubectl.json("changeworkload", f"sleep--x--{version}")["status"].get("actions", [])
    return found


def patch_status(kubectl: Kubectl, resource: str, name: str, status: Json) -> Json:
    """Patch the status as the documentation shows. Returns the answer, or the error as `denied`."""
    patch = json.dumps({"status": status})
    done = kubectl.run("patch", resource, name, "--subresource=status", "--type=merge", "-p", patch, "-o", "json")
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {"denied": done.stderr}
