"""Validation of CustomResourceDefinitions (apiextensions-apiserver, pkg/apis/apiextensions/validation).

The server validates its internal type, in which the parts that all versions share exist once. Its messages about these
parts contain `spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns` and `spec.selectableFields`
instead of a version.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.schema import structural
from kube_sandbox.apiserver.validation.selectable import selectable
from kube_sandbox.apiserver.validation.webhook import client_config

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SHARED = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}
"""The parts of versions, and their paths in the internal type if all versions share them."""
_PROTECTED_GROUP = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_APPROVED = "api-approved.kubernetes.io"


def name_rule(spec: Object) -> Any:
    """The rule for the name of a CRD: it is `<plural>.<group>`."""
    wanted = f"{spec['names']['plural']}.{spec['group']}"

    def rule(name: str) -> list[str]:
        wrong = texts.subdomain(name)
        return wrong if name == wanted else [*wrong, 'must be spec.names.plural+"."+spec.group']

    return rule


def crd(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    yield from _group(spec["group"])
    if spec["scope"] not in ("Cluster", "Namespaced"):
        yield (
            causes.unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
            if spec["scope"]
            else causes.required("spec.scope")
        )
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield causes.invalid("spec.preserveUnknownFields", True, why)
    yield from _versions(spec)
    yield from _names(spec["names"], "spec.names")
    yield from _conversion(spec["conversion"], "spec.conversion")
    if old is not None:
        yield from _changes(spec, old)
    yield from _stored_versions(obj["status"].get("storedVersions"), spec.get("versions") or ())
    if old is None and _PROTECTED_GROUP.fullmatch(spec["group"]):
        annotations = obj["metadata"].get("annotations") or {}
        if not annotations.get(_APPROVED):
            why = (
                "protected groups must have approval annotation "
                f'"{_APPROVED}", see https://github.com/kubernetes/enhancements/pull/1111'
            )
            yield causes.required(f"metadata.annotations[{_APPROVED}]", why)


def _group(group: str) -> Causes:
    if not group:
        yield causes.required("spec.group")
    elif wrong := texts.subdomain(group):
        yield causes.invalid("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")


def _versions(spec: Object) -> Causes:
    versions = spec.get("versions") or []
    shared = [field for field in _SHARED if all(version.get(field) == versions[0].get(field) for version in versions)]
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield causes.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from _label(version["name"], f"{path}.name")
        yield from _deprecation(version, path)
        for field in _SHARED:
            if field not in shared:
                yield from _part(field, version, f"{path}.{field}", with_schema="schema" not in shared)
    if len({version["name"] for version in versions}) != len(versions):
        yield causes.invalid("spec.versions", _internal_versions(versions), "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        yield causes.invalid("spec.versions", _internal_versions(spec["versions"]), why)
    if versions and versions[0]["name"]:
        yield from _label(versions[0]["name"], "spec.version")
    for field in ("plural", "singular", "kind", "listKind"):
        yield from causes.non_empty(f"spec.names.{field}", spec["names"].get(field))
    for field in shared if versions else ():
        yield from _part(field, versions[0], _SHARED[field], with_schema="schema" in shared)


def _label(name: str, path: str) -> Causes:
    """Validate a DNS label. All its errors are one cause."""
    if wrong := texts.label_1035(name):
        yield causes.invalid(path, name, ",".join(wrong))


def _part(field: str, version: Object, path: str, *, with_schema: bool) -> Causes:
    """Validate one of the parts of a version that all versions may share. `with_schema`: whether the schema is
    shared exactly if this part is."""
    match field:
        case "schema":
            if (found := (version.get("schema") or {}).get("openAPIV3Schema")) is not None:
                has_status = "status" in (version.get("subresources") or {})
                yield from structural(found, f"{path}.openAPIV3Schema", has_status=has_status)
        case "subresources":
            yield from _scale((version.get("subresources") or {}).get("scale"), f"{path}.scale")
        case "selectableFields":
            schema = (version.get("schema") or {}).get("openAPIV3Schema") if with_schema else None
            yield from selectable(version.get(field) or (), schema, path)
        case _:
            for index, column in enumerate(version.get(field) or ()):
                yield from _column(column, f"{path}[{index}]")


def _deprecation(version: Object, path: str) -> Causes:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield causes.invalid(where, warning, "can only be set for deprecated versions")
    elif len(warning) > 256:
        yield causes.invalid(where, warning, "must be <= 256 characters long")
    elif not warning:
        yield causes.invalid(where, warning, "must not be an empty string")


def _scale(scale: Object | None, path: str) -> Causes:
    if scale is None:
        return
    for field, under in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        target, where = scale[field], f"{path}.{field}"
        if not target:
            yield causes.required(where)
        elif not target.startswith("."):
            yield causes.invalid(where, target, "must be a simple json path starting with .")
        elif not target.startswith(under):
            yield causes.invalid(where, target, f"should be a json path under {under[:-1]}")
    if (target := scale.get("labelSelectorPath")) and not target.startswith((".spec.", ".status.")):
        why = "should be a json path under either .spec or .status"
        if not target.startswith("."):
            why = "must be a simple json path starting with ."
        yield causes.invalid(f"{path}.labelSelectorPath", target, why)


def _column(column: Object, path: str) -> Causes:
    yield from causes.non_empty(f"{path}.name", column["name"])
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column["type"]:
        yield causes.required(f"{path}.type", types)
    elif column["type"] not in _COLUMN_TYPES:
        yield causes.invalid(f"{path}.type", column["type"], types)
    if (format_ := column.get("format")) and format_ not in _COLUMN_FORMATS:
        yield causes.invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column["jsonPath"]:
        yield causes.required(f"{path}.JSONPath")
    elif not column["jsonPath"].startswith("."):
        why = "must be a simple json path starting with ."
        yield causes.invalid(f"{path}.JSONPath", column["jsonPath"], why)


def _names(names: Object, path: str) -> Causes:
    for field in ("plural", "singular"):
        if name := names.get(field):
            yield from _label(name, f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        if name and (wrong := texts.label_1035(name.lower())):
            why = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            yield causes.invalid(f"{path}.{field}", name, why)
    for index, name in enumerate(names.get("shortNames") or ()):
        yield from _label(name, f"{path}.shortNames[{index}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield causes.invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        yield from _label(name, f"{path}.categories[{index}]")


def _conversion(conversion: Object, path: str) -> Causes:
    strategy, webhook = conversion["strategy"], conversion.get("webhook") or {}
    if strategy not in ("None", "Webhook"):
        yield (
            causes.unsupported(f"{path}.strategy", strategy, ("None", "Webhook"))
            if strategy
            else causes.required(f"{path}.strategy")
        )
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if config is None:
            yield causes.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        else:
            yield from client_config(config, f"{path}.webhookClientConfig")
        if not versions:
            yield causes.required(f"{path}.conversionReviewVersions")
        elif not {"v1", "v1beta1"} & set(versions):
            why = "must include at least one of v1, v1beta1"
            yield causes.invalid(f"{path}.conversionReviewVersions", versions, why)
    elif config is not None:
        why = "should not be set when strategy is not set to Webhook"
        yield causes.forbidden(f"{path}.webhookClientConfig", why)


def _changes(spec: Object, old: Object) -> Causes:
    before = old["spec"]
    conditions = {found["type"]: found["status"] for found in old["status"].get("conditions") or ()}
    if conditions.get("Established") == "True":
        yield from causes.immutable("spec.scope", spec["scope"], before["scope"])
        yield from causes.immutable("spec.names.kind", spec["names"]["kind"], before["names"]["kind"])
    yield from causes.immutable("spec.group", spec["group"], before["group"])
    yield from causes.immutable("spec.names.plural", spec["names"]["plural"], before["names"]["plural"])


def _stored_versions(stored: Sequence[str] | None, versions: Sequence[Object]) -> Causes:
    path = "status.storedVersions"
    if not stored:
        yield causes.invalid(path, stored, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            yield causes.invalid(path, list(stored), f"must have the storage version {version['name']}")
    served = {version["name"] for version in versions}
    for index, name in enumerate(stored):
        if name not in served:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions"
            )
            yield causes.invalid(f"{path}[{index}]", name, why)


def _internal_versions(versions: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Versions as the server prints its internal type, without the parts that they share."""
    if versions is None:
        return None
    return [
        {
            "Name": version["name"],
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for version in versions
    ]
