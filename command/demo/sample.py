"""The Deployment that the demo releases, and the changes that the demo makes to it.

The manifests are those of `docs/samples`, except for the grace period: the container's process ignores SIGTERM, so
that each deleted pod would take 30 seconds on a real node.
"""

from typing import Any

from altershield.workloads import BY_KIND
from kube_base.resources import GroupKind

NAMESPACE = "altershield-demo"
NAME = "sleep"
REPLICAS = 5
MISSING_IMAGE = "busybo"
BAD_IMAGE = "busybo:1.38"
FIXED_IMAGE = "busybox:1.37"
ADAPTER = BY_KIND[GroupKind("apps", "Deployment")]
RESOURCE = ADAPTER.resource


def manifest(*, template_labels: dict[str, str] | None = None, image: str = "busybox") -> dict[str, Any]:
    """`docs/samples/sleep.yaml`; with the template label `test: "1234"`, `docs/samples/sleep-repaired.yaml`."""
    return {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME, **(template_labels or {})}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": NAME,
                            "image": image,
                            "command": ["/bin/sleep", "infinity"],
                            "imagePullPolicy": "IfNotPresent",
                        }
                    ],
                },
            },
        },
    }


def template_patch(value: str) -> dict[str, Any]:
    """A new value of the template's label `test`: a release that changes nothing else."""
    return {"spec": {"template": {"metadata": {"labels": {"test": value}}}}}


def image_patch(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": NAME, "image": image}]}}}}
