"""Creates and releases Deployments as users do."""

from typing import Any

from altershield.api import labels
from kube_base.access.client import Client, PatchType
from kube_base.resources import DEPLOYMENTS


async def create(admin: Client, namespace: str, name: str, replicas: int) -> str:
    """Create a Deployment. Returns its version."""
    return version(await admin.create(DEPLOYMENTS, deployment(name, replicas=replicas), namespace))


async def release(
    admin: Client, namespace: str, name: str, value: str, image: str = "busybox", **container_fields: Any
) -> str:
    """Release a new pod template, with `value` in an environment variable. Returns its version."""
    container = {"name": "app", "image": image, "env": [{"name": "RELEASE", "value": value}], **container_fields}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return version(await admin.patch(DEPLOYMENTS, patch, name, namespace, type_=PatchType.STRATEGIC))


def version(stored: dict[str, Any]) -> str:
    return str(stored["metadata"]["labels"][labels.VERSION])


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    """A Deployment with one container. `spec` contains more fields of its spec."""
    pod_labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": pod_labels},
        "spec": {
            "selector": {"matchLabels": pod_labels},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {"containers": [{"name": "app", "image": "busybox"}]},
            },
            **spec,
        },
    }
