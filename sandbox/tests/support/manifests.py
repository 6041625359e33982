"""Manifests for tests of the API server."""

from typing import Any

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"key": "value"}}


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def deployment(name: str, *, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def crd(schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    """The CRD of Widgets, with status and scale. The spec has a colour and a size (default 3, maximum 10)."""
    spec = schema or {
        "type": "object",
        "required": ["colour"],
        "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "size": {"type": "integer", "default": 3, "maximum": 10},
            "replicas": {"type": "integer"},
        },
    }
    status = {"type": "object", "properties": {"state": {"type": "string"}, "replicas": {"type": "integer"}}}
    properties = {"spec": spec, "status": status}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    "additionalPrinterColumns": [
                        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
                    ],
                    **version,
                }
            ],
        },
    }


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
