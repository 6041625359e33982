"""Deployments of the measurements, and their releases."""

import json
from collections.abc import Callable
from typing import Any

from altershield.api import labels
from altershield.workloads.adapter import template_of
from altershield.workloads.workload import fingerprint_of
from kube_base.access.client import Client, PatchType
from kube_base.resources import DEPLOYMENTS

IMAGE = "busybox"
_PROBE = "the-name-of-no-app"


async def create(admin: Client, namespace: str, name: str, replicas: int) -> str:
    """Create a Deployment. Returns its version, which a gatekeeper set."""
    return version(await admin.create(DEPLOYMENTS, deployment(name, replicas=replicas), namespace))


async def release(
    admin: Client,
    namespace: str,
    name: str,
    value: str,
    image: str = IMAGE,
    *,
    dry_run: bool = False,
    **container_fields: Any,
) -> str:
    """Release a new pod template, with `value` in an environment variable. Returns its version; empty without a
    gatekeeper."""
    container = {"name": "app", "image": image, "env": [{"name": "RELEASE", "value": value}], **container_fields}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return version(await admin.patch(DEPLOYMENTS, patch, name, namespace, type_=PatchType.STRATEGIC, dry_run=dry_run))


def version(stored: dict[str, Any]) -> str:
    return str(stored["metadata"]["labels"].get(labels.VERSION, ""))


async def versions(admin: Client) -> Callable[[str, str], str]:
    """For measurements without a gatekeeper. Returns a function of a name and an image: the version that a gatekeeper
    would set, which is the fingerprint of the template as the API server returns it."""
    shown: dict[str, Any] = await admin.create(DEPLOYMENTS, deployment(_PROBE, replicas=0), "default")
    template = json.dumps(shown["spec"]["template"])

    def of(name: str, image: str) -> str:
        return fingerprint_of(template_of(json.loads(template.replace(_PROBE, name).replace(IMAGE, image))))

    return of


def deployment(name: str, *, version: str = "", image: str = IMAGE, **spec: Any) -> dict[str, Any]:
    """A Deployment with one container. `spec` contains more fields of its spec. With `version`, it has the labels that
    a gatekeeper would set."""
    own = {"app": name} | ({labels.VERSION: version} if version else {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": own},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": own}, "spec": {"containers": [{"name": "app", "image": image}]}},
            **spec,
        },
    }
