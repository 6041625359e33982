"""Manifests of workloads."""

from typing import Any

from altershield.workloads import ADAPTERS

Object = dict[str, Any]

BY_NAME = {adapter.resource.kind: adapter for adapter in ADAPTERS}
"""The adapters by the names of their kinds, which are different."""

GROUP_KINDS = {name: adapter.resource.group_kind for name, adapter in BY_NAME.items()}


def manifest(
    kind: str,
    name: str,
    image: str,
    *,
    replicas: int | None = None,
    labels: Object | None = None,
    template_labels: Object | None = None,
    metadata: Object | None = None,
    container: Object | None = None,
    **spec: Any,
) -> Object:
    """A Deployment, StatefulSet, DaemonSet or CloneSet whose pods have one container.

    The selector is the label `app: NAME`. The workload has it in addition to `labels`, and its pods in addition to
    `template_labels`. `metadata`, `container` and `spec` add or replace fields. A DaemonSet has no replicas, so none
    are set.
    """
    app = {"app": name}
    count = {} if replicas is None or kind == "DaemonSet" else {"replicas": replicas}
    pods = {"selector": {"matchLabels": app}, "template": template(name, image, template_labels, container=container)}
    return {
        "apiVersion": BY_NAME[kind].resource.api_version,
        "kind": kind,
        "metadata": {"name": name, "labels": {**app, **(labels or {})}, **(metadata or {})},
        "spec": {**count, **pods, **spec},
    }


def template(
    name: str, image: str, labels: Object | None = None, *, container: Object | None = None, **spec: Any
) -> Object:
    """The template of the pods of a workload. `container` and `spec` add or replace fields."""
    containers = [{"name": "main", "image": image, **(container or {})}]
    return {"metadata": {"labels": {"app": name, **(labels or {})}}, "spec": {"containers": containers, **spec}}
