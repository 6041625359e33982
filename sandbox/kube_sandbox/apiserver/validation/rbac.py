"""Validation of roles and their bindings (k8s.io/kubernetes, pkg/apis/rbac/validation)."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_selector

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def role(obj: Object, _: Object | None) -> Causes:
    """Validate a Role or a ClusterRole."""
    for index, rule in enumerate(obj["rules"] or ()):
        yield from _rule(rule, f"rules[{index}]", namespaced=obj["kind"] == "Role")
    if (aggregation := obj.get("aggregationRule")) is not None:
        path = "aggregationRule.clusterRoleSelectors"
        chosen = aggregation.get("clusterRoleSelectors") or ()
        if not chosen:
            yield causes.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(chosen):
            wrong = list(label_selector(selector, f"{path}[{index}]"))
            yield from wrong
            if wrong:
                yield causes.invalid(f"{path}[{index}]", None, "invalid label selector.")


def _rule(rule: Object, path: str, *, namespaced: bool) -> Causes:
    if not rule["verbs"]:
        yield causes.required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        where = f"{path}.nonResourceURLs"
        if namespaced:
            yield causes.invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield causes.invalid(where, urls, why)
        return
    if not rule.get("apiGroups"):
        yield causes.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield causes.required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Object, old: Object | None) -> Causes:
    """Validate a RoleBinding or a ClusterRoleBinding."""
    namespaced, reference = obj["kind"] == "RoleBinding", obj["roleRef"]
    if reference["apiGroup"] != _GROUP:
        yield causes.unsupported("roleRef.apiGroup", reference["apiGroup"], (_GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from causes.one_of("roleRef.kind", reference["kind"], kinds)
    yield from causes.mandatory("roleRef.name", reference["name"], texts.path_segment)
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and old["roleRef"] != reference:
        shown = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
        yield causes.invalid("roleRef", shown, "cannot change roleRef")


def _subject(subject: Object, path: str, *, namespaced: bool) -> Causes:
    name, group = subject["name"], subject.get("apiGroup", "")
    yield from causes.non_empty(f"{path}.name", name)
    match subject["kind"]:
        case "ServiceAccount":
            if name:
                yield from causes.invalid_each(f"{path}.name", name, texts.subdomain(name))
            if group:
                yield causes.unsupported(f"{path}.apiGroup", group, ("",))
            if not namespaced and not subject.get("namespace"):
                yield causes.required(f"{path}.namespace")
        case "User" | "Group":
            if group != _GROUP:
                yield causes.unsupported(f"{path}.apiGroup", group, (_GROUP,))
        case kind:
            yield causes.unsupported(f"{path}.kind", kind, _SUBJECTS)
