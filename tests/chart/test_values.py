"""values.yaml and values.schema.json have the same keys, and a wrong value causes an error with its path."""

import json
import re
from collections.abc import Iterable, Iterator

import helm_python
import pytest

from supply_chain import near_names
from tests.chart.rendering import CHART, DEFAULTS, SCHEMA, Object, rendered


def keys(schema: Object, path: str = "") -> Iterator[str]:
    """The keys that a schema defines, as dotted paths."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    for name, sub in schema.get("properties", {}).items():
        yield f"{path}{name}"
        yield from keys(sub, f"{path}{name}.")


def keys_of_values(values: Object, path: str = "") -> Iterator[str]:
    """The keys of values, as dotted paths."""
    for name, value in values.items():
        yield f"{path}{name}"
        if isinstance(value, dict):
            yield from keys_of_values(value, f"{path}{name}.")


FREE = re.compile(
    r"(resources|annotations|(^|\.)labels|issuerRef|nodeSelector|SecurityContext|strategy|dnsConfig|namespaceSelector"
    r"|objectSelector)(\.|$)|claims|commonLabels|podLabels",
    re.I,
)
"""Keys whose content is passed to Kubernetes, and may have any keys."""


def test_every_value_has_a_default_and_a_schema() -> None:
    known = {key for key in keys(SCHEMA) if not FREE.search(key)}
    assert known == {key for key in keys_of_values(DEFAULTS) if not FREE.search(key)}


def test_every_value_has_a_description() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    undescribed = []
    for number, line in enumerate(lines):
        above = number
        while above and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        is_key = re.match(r" *[a-zA-Z]+:", line)
        has_children = line.endswith(":") and lines[number + 1].lstrip().startswith("# --")
        inside_described = line.startswith("    ") or re.match(
            r"  (runAs|seccomp|allowPriv|readOnlyRoot|capabilities|kubernetes\.io)", line
        )
        if is_key and not has_children and not inside_described and not lines[above].lstrip().startswith("# --"):
            undescribed.append(line)
    assert undescribed == []


def closed(schema: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths at which only defined keys are allowed."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if schema.get("additionalProperties") is False:
        yield path
    for name, sub in schema.get("properties", {}).items():
        yield from closed(sub, (*path, name))


def leaves(schema: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    for name, sub in schema.get("properties", {}).items():
        yield from leaves(sub, (*path, name))
    if path and not schema.get("properties"):
        yield path


def with_each(paths: Iterable[tuple[str, ...]], value: object) -> Object:
    """Values that have `value` at each of the paths."""
    values: Object = {}
    for path in paths:
        level = values
        for name in path[:-1]:
            level = level.setdefault(name, {})
        level[path[-1]] = value
    return values


def refused(chart: helm_python.Chart, values: Object) -> str:
    """The error about the values. It has a line for each wrong one: Helm compiles the schema anew in each check, which
    takes 30 ms, so the tests check all paths at once."""
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema(values)
    return str(caught.value)


def test_unknown_keys_are_rejected_at_every_level(chart: helm_python.Chart) -> None:
    levels = [*closed(SCHEMA)]
    error = refused(chart, with_each([(*path, "typo") for path in levels], "1"))
    found = re.findall(r"at '/?([^']*)': additional properties 'typo' not allowed", error)
    assert set(found) == {"/".join(path) for path in levels}


def test_values_of_a_wrong_type_are_rejected(chart: helm_python.Chart) -> None:
    paths = [*leaves(SCHEMA)]
    found = re.findall(r"at '/([^']*)'", refused(chart, with_each(paths, 1.5)))
    assert {"/".join(path) for path in paths} - set(found) == set()


def test_only_values_passed_to_kubernetes_accept_any_key() -> None:
    """A new group of values must reject unknown keys, unless the chart passes it to Kubernetes unchanged."""
    free = {".".join(path) for path in leaves(SCHEMA)} - {".".join(path) for path in closed(SCHEMA)}
    objects = {path for path in free if isinstance(default(path), dict)}
    assert objects == {
        "commonLabels", "webhooks.annotations", "nodeSelector", "affinity", "podAnnotations", "podLabels",
        "podSecurityContext", "containerSecurityContext", "serviceAccount.annotations",
        "reconciler.serviceAccount.annotations", "serviceMonitor.labels", "podMonitor.labels", "prometheusRule.labels",
        "dashboards.labels",
        "prometheusRule.alertLabels", "dashboards.grafanaOperator.instanceLabels",
        "dashboards.annotations", "gatekeeper.resources.requests", "gatekeeper.resources.limits",
        "reconciler.resources.requests", "reconciler.resources.limits", "certificates.resources.requests",
        "certificates.resources.limits",
    }  # fmt: skip


def default(path: str) -> object:
    value: object = {"global": {}, **DEFAULTS}
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"leafLifetimeSeconds": 31536000}, "caLifetimeSeconds (31536000) must be at least three times"),
        (
            {"settleSeconds": 3600, "leafLifetimeSeconds": 7200},
            "leafLifetimeSeconds (7200) must be at least three times",
        ),
    ],
)
def test_certificate_lifetimes_that_certgen_refuses_are_rejected(
    chart: helm_python.Chart, values: Object, sentence: str
) -> None:
    with pytest.raises(helm_python.HelmError) as caught:
        rendered(chart, {"certificates": values})
    assert sentence in str(caught.value)
    rendered(chart, {"certificates": {**values, "mode": "secret"}})


def test_global_values_of_a_parent_chart_are_accepted(chart: helm_python.Chart) -> None:
    chart.validate_schema({"global": {"imageRegistry": "registry.example.com", "storageClass": "fast"}})


def test_the_error_about_an_unknown_key_names_the_keys_of_its_level(chart: helm_python.Chart) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema({"replicaCount": 2, "webhooks": {"validating": {"failurepolicy": "Ignore"}}})
    assert "'replicas'" in str(caught.value)
    assert "value must be one of 'failurePolicy', 'timeoutSeconds'" in str(caught.value)


def test_each_closed_level_of_the_schema_has_the_patterns_of_its_names() -> None:
    text = (CHART / "values.schema.json").read_text()
    assert text == near_names.written(text), "the values changed: run `make crds`"


@pytest.mark.parametrize(
    ("values", "where", "nearest"),
    [
        ({"replicaCount": 2}, "''", "replicas"),
        ({"replica": 2}, "''", "replicas"),
        ({"LogLevel": "info"}, "''", "logLevel"),
        ({"servicemonitor": {}}, "''", "serviceMonitor"),
        ({"extraVolume": []}, "''", "extraVolumes"),
        ({"reconciler": {"observeSecond": 5}}, "'/reconciler'", "observeSeconds"),
        ({"reconciler": {"pretimeoutSeconds": 5}}, "'/reconciler'", "preTimeoutSeconds"),
        ({"certificates": {"issuer": {}}}, "'/certificates'", "issuerRef"),
        ({"webhooks": {"objectSelectors": {}}}, "'/webhooks'", "objectSelector"),
        (
            {"prometheusRule": {"alerts": {"AlterShieldDenialStrom": {}}}},
            "'/prometheusRule/alerts'",
            "AlterShieldDenialStorm",
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_the_error_about_an_unknown_key_ends_with_the_nearest_key(
    chart: helm_python.Chart, values: Object, where: str, nearest: str
) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema(values)
    lines = str(caught.value).rstrip().splitlines()
    assert f"at {where}: additional properties" in lines[1]
    assert lines[-1].endswith(f"value must be '{nearest}'")


def mistyped(name: str) -> Iterator[str]:
    """The name with one mistake."""
    yield name.lower()
    for place in range(len(name)):
        yield name[:place] + name[place + 1 :]
        yield f"{name[:place]}x{name[place + 1 :]}"
        yield f"{name[:place]}x{name[place:]}"
    yield f"{name}x"


def test_each_name_with_one_wrong_missing_or_additional_character_has_a_hint() -> None:
    levels = {path: list(at(path)["properties"]) for path in closed(SCHEMA)}
    assert max(map(len, levels.values())) > near_names.FEW
    for names in levels.values():
        for name in names if len(names) > near_names.FEW else ():
            pattern = re.compile(near_names.near(name, names))
            assert [each for each in mistyped(name) if each not in names and not pattern.search(each)] == []
            assert [each for each in names if pattern.search(each)] == [name]


def at(path: tuple[str, ...]) -> Object:
    """The schema of a value."""
    schema: Object = SCHEMA
    for name in path:
        schema = schema["properties"][name]
        if "$ref" in schema:
            schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


@pytest.mark.parametrize(
    ("values", "where", "what"),
    [
        ({"replica": 2}, "''", "additional properties 'replica' not allowed"),
        ({"webhooks": {"validating": {"failurepolicy": "Ignore"}}}, "/webhooks/validating", "'failurepolicy'"),
        ({"webhooks": {"validating": {"failurePolicy": "ignore"}}}, "failurePolicy", "'Ignore', 'Fail'"),
        ({"webhooks": {"mutating": {"timeoutSeconds": 30}}}, "timeoutSeconds", "want 10"),
        ({"certificates": {"mode": "certmanager"}}, "/certificates/mode", "'certgen', 'cert-manager', 'secret'"),
        ({"replicas": 0}, "/replicas", "want 1"),
        (
            {"webhooks": {"clientAuthentication": {"configMap": "", "commonName": "a"}}},
            "/webhooks/clientAuthentication/commonName",
            "must be ''",
        ),
        ({"replicas": "3"}, "/replicas", "got string, want integer"),
        ({"image": {"digest": "sha256:abc"}}, "/image/digest", "does not match pattern"),
        ({"podLabels": {"a": True}}, "/podLabels/a", "got boolean, want string"),
        ({"serviceMonitor": {"interval": "often"}}, "/serviceMonitor/interval", "does not match pattern"),
        ({"gatekeeper": {"resources": {"limit": {}}}}, "/gatekeeper/resources", "'limit' not allowed"),
        ({"topologySpread": {"nodes": "Never"}}, "/topologySpread/nodes", "'ScheduleAnyway', 'DoNotSchedule'"),
        ({"crds": {"enabled": True}}, "/crds", "'enabled' not allowed"),
        ({"certificates": {"issuerRef": {"kind": "ClusterIssuer"}}}, "/certificates/issuerRef", "'name'"),
    ],
    ids=lambda part: json.dumps(part) if isinstance(part, dict) else "",
)
def test_a_wrong_value_is_rejected_with_its_path(
    chart: helm_python.Chart, values: Object, where: str, what: str
) -> None:
    with pytest.raises(helm_python.HelmValuesError) as caught:
        chart.validate_schema(values)
    assert where in str(caught.value)
    assert what in str(caught.value)
