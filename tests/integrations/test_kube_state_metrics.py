"""The configuration for kube-state-metrics has the documented shape, and names fields that exist."""

from typing import Literal

import msgspec
import pytest
import yaml

from altershield.api.change_workload import WorkloadState
from altershield.api.flow_control import BreakerState
from altershield.api.policy import Mode
from tests.integrations.objects import FOLDER, Json, crds, schema_at

CONFIG = (FOLDER / "kube-state-metrics" / "config.yaml").read_text()

Path = list[str]
Labels = dict[str, Path]


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    pass


class Gauge(Strict):
    path: Path
    labels_from_path: Labels = {}
    label_from_key: str = ""
    value_from: Path = []
    nil_is_zero: bool = False


class Info(Strict):
    path: Path = []
    labels_from_path: Labels = {}
    label_from_key: str = ""


class StateSet(Strict):
    path: Path
    list: list[str]
    label_name: str
    labels_from_path: Labels = {}
    value_from: Path = []


class Each(Strict):
    type: Literal["Gauge", "Info", "StateSet"]
    gauge: Gauge | None = None
    info: Info | None = None
    state_set: StateSet | None = None


class Generator(Strict):
    name: str
    help: str
    each: Each
    common_labels: dict[str, str] = {}
    labels_from_path: Labels = {}
    error_log_v: int = 0


class GroupVersionKind(Strict):
    group: str
    version: str
    kind: str


class Resource(Strict):
    group_version_kind: GroupVersionKind
    metrics: list[Generator]
    metric_name_prefix: str = "kube_customresource"
    resource_plural: str = ""
    common_labels: dict[str, str] = {}
    labels_from_path: Labels = {}
    error_log_v: int = 0


class Spec(Strict):
    resources: list[Resource]


class Config(Strict):
    """The configuration, as kube-state-metrics documents it in `customresourcestate-metrics.md`."""

    kind: Literal["CustomResourceStateMetrics"]
    spec: Spec


[_FILE] = yaml.load_all(CONFIG, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # each worker loads it
RESOURCES = msgspec.convert(_FILE, Config).spec.resources
METRICS = [
    pytest.param(each, metric, id=f"{each.metric_name_prefix}_{metric.name}")
    for each in RESOURCES
    for metric in each.metrics
]


def schema_of(resource: Resource) -> Json:
    crd = crds()[resource.group_version_kind.kind]
    assert crd["spec"]["group"] == resource.group_version_kind.group
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == resource.group_version_kind.version]
    schema: Json = version["schema"]["openAPIV3Schema"]
    schema["properties"] |= {"metadata": {"properties": {"name": {}, "namespace": {}}}}
    return schema


def test_each_kind_is_configured_once() -> None:
    assert [each.group_version_kind.kind for each in RESOURCES] == sorted(
        crds(), key=[each.group_version_kind.kind for each in RESOURCES].index
    )


@pytest.mark.parametrize(("resource", "metric"), METRICS)
def test_metric_reads_fields_that_exist(resource: Resource, metric: Generator) -> None:
    schema, each = schema_of(resource), metric.each
    configured = [found for found in (each.gauge, each.info, each.state_set) if found]
    assert len(configured) == 1, "one type a metric"
    (settings,) = configured
    assert {"Gauge": Gauge, "Info": Info, "StateSet": StateSet}[each.type] is type(settings)
    for path in resource.labels_from_path.values():
        assert schema_at(schema, path) is not None, path
    target = schema_at(schema, settings.path)
    assert target is not None, settings.path
    target = target.get("items", target)
    paths = [*settings.labels_from_path.values(), *([] if isinstance(settings, Info) else [settings.value_from])]
    assert [path for path in paths if schema_at(target, path) is None] == []


@pytest.mark.parametrize(("resource", "metric"), METRICS)
def test_labels_of_a_metric_do_not_override_each_other(resource: Resource, metric: Generator) -> None:
    settings = metric.each.gauge or metric.each.info or metric.each.state_set
    assert settings is not None
    own = [*settings.labels_from_path, *([settings.label_name] if isinstance(settings, StateSet) else [])]
    labels = [*own, *resource.labels_from_path]
    assert len(set(labels)) == len(labels)


def test_state_sets_list_every_state() -> None:
    states = {
        (each.group_version_kind.kind, metric.name): metric.each.state_set.list
        for each in RESOURCES
        for metric in each.metrics
        if metric.each.state_set
    }
    assert states == {
        ("ChangeWorkload", "status"): list(WorkloadState),
        ("DefensePolicy", "mode"): list(Mode),
        ("PodDeletionFlowControl", "breaker"): list(BreakerState),
    }


def test_role_may_watch_exactly_the_configured_kinds() -> None:
    role = yaml.safe_load((FOLDER / "kube-state-metrics" / "role.yaml").read_text())
    found = {
        (group, resource) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
    }
    ours = {(crd["spec"]["group"], crd["spec"]["names"]["plural"]) for crd in crds().values()}
    assert found == ours | {("apiextensions.k8s.io", "customresourcedefinitions")}
    assert all(rule["verbs"] == ["list", "watch"] for rule in role["rules"])
