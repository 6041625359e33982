"""Schemas of the operators' kinds that the chart uses, from the operators' API references. They contain only the fields
that the chart sets; other fields are errors."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

PrometheusDuration = Annotated[str, Meta(pattern=r"^(\d+(y|w|d|h|m|s|ms))+$")]
GoDuration = Annotated[str, Meta(pattern=r"^(\d+(h|m|s))+$")]
Name = Annotated[str, Meta(min_length=1)]


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    pass


class _Metadata(_Strict):
    name: Name
    namespace: Name
    labels: dict[str, str]


class _Requirement(_Strict):
    key: Name
    operator: Literal["In"]
    values: list[str]


class _Selector(_Strict):
    match_labels: dict[str, str]
    match_expressions: list[_Requirement] | UnsetType = UNSET


class _NamespaceSelector(_Strict):
    match_names: list[Name]


class _Relabeling(_Strict):
    action: Literal["drop", "keep", "replace"] | UnsetType = UNSET
    source_labels: list[Name] | UnsetType = UNSET
    target_label: Name | UnsetType = UNSET
    regex: Name | UnsetType = UNSET


class _Endpoint(_Strict):
    port: Name
    honor_labels: bool
    interval: PrometheusDuration | UnsetType = UNSET
    scrape_timeout: PrometheusDuration | UnsetType = UNSET
    relabelings: list[_Relabeling] | UnsetType = UNSET
    metric_relabelings: list[_Relabeling] | UnsetType = UNSET


class _Monitored(_Strict):
    selector: _Selector
    endpoints: Annotated[list[_Endpoint], Meta(min_length=1)]
    namespace_selector: _NamespaceSelector | UnsetType = UNSET


class _MonitoredPods(_Strict):
    selector: _Selector
    pod_metrics_endpoints: Annotated[list[_Endpoint], Meta(min_length=1)]
    namespace_selector: _NamespaceSelector | UnsetType = UNSET


class ServiceMonitor(_Strict):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["ServiceMonitor"]
    metadata: _Metadata
    spec: _Monitored


class PodMonitor(_Strict):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PodMonitor"]
    metadata: _Metadata
    spec: _MonitoredPods


class _Rule(_Strict):
    """A recording rule, or an alert with labels and annotations."""

    expr: Name
    record: Name | UnsetType = UNSET
    alert: Name | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    for_: PrometheusDuration | UnsetType = msgspec.field(name="for", default=UNSET)
    keep_firing_for: PrometheusDuration | UnsetType = msgspec.field(name="keep_firing_for", default=UNSET)


class _Group(_Strict):
    name: Name
    rules: list[_Rule]
    interval: PrometheusDuration | UnsetType = UNSET


class _Groups(_Strict):
    groups: Annotated[list[_Group], Meta(min_length=1)]


class PrometheusRule(_Strict):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PrometheusRule"]
    metadata: _Metadata
    spec: _Groups


class _ConfigMapRef(_Strict):
    name: Name
    key: Name


class _Dashboard(_Strict):
    instance_selector: _Selector
    config_map_ref: _ConfigMapRef
    allow_cross_namespace_import: bool
    folder: Name | UnsetType = UNSET
    resync_period: GoDuration | UnsetType = UNSET


class GrafanaDashboard(_Strict):
    api_version: Literal["grafana.integreatly.org/v1beta1"]
    kind: Literal["GrafanaDashboard"]
    metadata: _Metadata
    spec: _Dashboard


class _SecretTemplate(_Strict):
    labels: dict[str, str]


class _PrivateKey(_Strict):
    algorithm: Literal["ECDSA"]
    size: Literal[256, 384, 521]
    rotation_policy: Literal["Never", "Always"]


class _IssuerRef(_Strict):
    name: Name
    kind: Name | UnsetType = UNSET
    group: Name | UnsetType = UNSET


class _Certificate(_Strict):
    secret_name: Name
    secret_template: _SecretTemplate
    issuer_ref: _IssuerRef
    duration: GoDuration
    private_key: _PrivateKey
    common_name: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    is_ca: bool = msgspec.field(name="isCA", default=False)
    dns_names: list[Name] | UnsetType = UNSET
    ip_addresses: list[Name] | UnsetType = UNSET
    usages: list[Literal["server auth", "digital signature"]] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.common_name is UNSET and self.dns_names is UNSET:
            raise ValueError("a certificate needs commonName or dnsNames")


class Certificate(_Strict):
    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Certificate"]
    metadata: _Metadata
    spec: _Certificate


class _SelfSigned(_Strict):
    pass


class _Authority(_Strict):
    secret_name: Name


class _Issuer(_Strict):
    self_signed: _SelfSigned | UnsetType = UNSET
    ca: _Authority | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.self_signed is UNSET) is (self.ca is UNSET):
            raise ValueError("an issuer has exactly one type")


class Issuer(_Strict):
    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Issuer"]
    metadata: _Metadata
    spec: _Issuer


KINDS = {
    kind.__name__: kind for kind in (ServiceMonitor, PodMonitor, PrometheusRule, GrafanaDashboard, Certificate, Issuer)
}


def validate(obj: dict[str, Any]) -> None:
    """Raises msgspec.ValidationError if the operator would reject a field or ignore it silently."""
    msgspec.convert(obj, KINDS[obj["kind"]])
