"""Manifests for the conformance tests."""

import json
from typing import Any

Json = dict[str, Any]


def deployment(name: str, *, replicas: int = 1, image: str = "busybox", **spec: Any) -> Json:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"a": "1"} if data is None else data,
    }


def text(*objects: Json) -> str:
    """A manifest for `kubectl -f -`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects} if len(objects) > 1 else objects[0])
