"""The objects that the check creates: a workload, and Secrets for the registries of its image."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from altershield.workloads import BY_KIND
from kube_base.resources import GroupKind

NAME = "altershield-check"
"""The name of the workload."""

ADAPTER = BY_KIND[GroupKind("apps", "Deployment")]
RESOURCE = ADAPTER.resource
"""The kind of the workload."""


def pull_secret(file: Path) -> dict[str, Any]:
    """The Secret for a registry. Its name is specific to this command, which deletes it at the end."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{NAME}-{file.name}"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(file.read_bytes()).decode()},
    }


def manifest(image: str, pod_spec: dict[str, Any], pull_secrets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A workload with one pod that does nothing and meets the restricted Pod Security Standard."""
    return {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False,
                    "imagePullSecrets": [{"name": secret["metadata"]["name"]} for secret in pull_secrets],
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,  # the default user of busybox is root
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    **pod_spec,
                    "containers": [
                        {
                            "name": NAME,
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["sleep", "3600"],
                            "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                        }
                    ],
                },
            },
        },
    }
