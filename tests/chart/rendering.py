"""The chart's path, and functions that render it and select objects."""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from altershield.api.names import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    import helm_python

Object = dict[str, Any]

CHART = Path(__file__).parents[2] / "charts" / "altershield"
SCHEMA: Object = json.loads((CHART / "values.schema.json").read_text())
VALUES = sorted(CHART.glob("ci/*-values.yaml"))
RELEASE = "altershield"
HOOK = "helm.sh/hook"
OPERATORS = {"cert-manager.io/v1", "monitoring.coreos.com/v1", "grafana.integreatly.org/v1beta1"}
"""API groups that Kubernetes has no schema for."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C, where PyYAML has it, takes an eighth of the time, which is most of the time of a test."""

DEFAULTS: Object
[DEFAULTS] = yaml.load_all((CHART / "values.yaml").read_text(), _LOADER)


def loaded(path: Path) -> Object:
    """The values in a file."""
    values: Object = yaml.safe_load(path.read_text()) or {}
    return values


def rendered(
    chart: "helm_python.Chart",
    values: Object | None = None,
    *,
    release: str = RELEASE,
    namespace: str = SYSTEM_NAMESPACE,
) -> list[Object]:
    """The objects of a release."""
    texts = _manifests(chart, json.dumps(values or {}), release, namespace)
    return [obj for path, text in texts.items() if path.endswith(".yaml") for obj in orjson.loads(_parsed(text))]


def manifests(chart: "helm_python.Chart", values: Object) -> Mapping[str, str]:
    """The texts of a release, including the notes, by the paths of their templates."""
    return _manifests(chart, json.dumps(values), RELEASE, SYSTEM_NAMESPACE)


@functools.lru_cache(maxsize=500)
def _manifests(chart: "helm_python.Chart", values: str, release: str, namespace: str) -> Mapping[str, str]:
    """The manifests by their path, for values as JSON. They are kept, because each rendering takes 80 ms of CPU time
    and many tests need the same ones."""
    return chart.render(json.loads(values), name=release, namespace=namespace)


@functools.lru_cache(maxsize=2000)
def _parsed(text: str) -> bytes:
    """The objects of a manifest, as JSON. Most manifests are the same for most values."""
    return orjson.dumps([obj for obj in yaml.load_all(text, _LOADER) if obj])


def notes(chart: "helm_python.Chart", values: Object | None = None) -> str:
    return manifests(chart, values or {})[f"{chart.name}/templates/NOTES.txt"]


def is_hook(obj: Object) -> bool:
    return HOOK in (obj["metadata"].get("annotations") or {})


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """The objects of a kind, without hooks."""
    return [obj for obj in objects if obj["kind"] == kind and not is_hook(obj)]


def the(objects: Sequence[Object], kind: str) -> Object:
    """The only object of a kind. Hooks, the roles for users, the Service of the callback port and the objects of a
    separate reconciler are left out."""
    others = [*user_roles(objects), *callback_services(objects)]
    (found,) = [obj for obj in of_kind(objects, kind) if obj not in others and component(obj) != "reconciler"]
    return found


def component(obj: Object) -> str:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/component", "")


def of_reconciler(objects: Sequence[Object], kind: str) -> Object:
    """The only object of a kind that belongs to a separate reconciler, without the Service of the callback port and
    without objects in other namespaces."""
    own = [obj for obj in of_kind(objects, kind) if component(obj) == "reconciler"]
    (found,) = [obj for obj in own if not obj["metadata"]["name"].endswith(("-callbacks", "-check-secrets"))]
    return found


def callback_services(objects: Sequence[Object]) -> list[Object]:
    """The Service of the callback port, if the values have one."""
    return [obj for obj in of_kind(objects, "Service") if obj["metadata"]["name"].endswith("-callbacks")]


def user_roles(objects: Sequence[Object]) -> list[Object]:
    """The ClusterRoles that the chart binds to nobody: administrators bind them to users."""
    bound = {binding["roleRef"]["name"] for binding in of_kind(objects, "ClusterRoleBinding")}
    return [role for role in of_kind(objects, "ClusterRole") if role["metadata"]["name"] not in bound]


def all_containers(objects: Sequence[Object]) -> dict[str, Object]:
    """The containers of all Deployments, by name."""
    deployments = of_kind(objects, "Deployment")
    return {name: container for deployment in deployments for name, container in containers(deployment).items()}


def containers(deployment: Object) -> dict[str, Object]:
    return {container["name"]: container for container in deployment["spec"]["template"]["spec"]["containers"]}


def variables(container: Object) -> dict[str, str]:
    """The environment variables of a container that have a literal value."""
    return {variable["name"]: variable["value"] for variable in container.get("env", ()) if "value" in variable}


def flat(rule: Object) -> Iterator[tuple[str, str, str]]:
    """Verb, group and resource of all that an RBAC rule allows."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield verb, group, resource
