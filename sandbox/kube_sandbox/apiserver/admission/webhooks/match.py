"""Selects the admission webhooks for a request: rules, selectors, match policy and match conditions.

The rules are those of kube-apiserver's `pkg/admission/plugin/webhook/{generic,predicates}`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube_sandbox.apiserver.admission.webhooks.conditions import Evaluations, evaluate
from kube_sandbox.apiserver.admission.webhooks.review import Invocation, Kind, request_kind
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader
from kube_sandbox.apiserver.auth.authorization import includes
from kube_sandbox.apiserver.errors import forbidden
from kube_sandbox.apiserver.gotext import aggregated
from kube_sandbox.apiserver.storage import selectors
from kube_sandbox.apiserver.storage.registry import NAMESPACES
from kube_sandbox.apiserver.storage.store import not_found

GROUP = "admissionregistration.k8s.io"
_EXEMPT = {
    f"{effect}{kind}"
    for effect in ("Mutating", "Validating")
    for kind in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
}


@dataclass(frozen=True, slots=True)
class Hook:
    """One entry of `webhooks` in a configuration. `uid` is unique among the configurations of one kind."""

    uid: str
    spec: Object

    @property
    def name(self) -> str:
        return str(self.spec["name"])


def hooks(configurations: Sequence[Object]) -> list[Hook]:
    """All webhooks of the MutatingWebhookConfigurations or ValidatingWebhookConfigurations, in the order of calls."""
    return [
        Hook(f"{_name(configuration)}/{spec['name']}/{index}", spec)
        for configuration in sorted(configurations, key=_name)
        for index, spec in enumerate(configuration.get("webhooks") or ())
    ]


def is_exempt(attributes: Attributes) -> bool:
    """Whether the request writes a configuration of admission. No webhook is called for it, so that users can always
    repair a configuration."""
    return request_kind(attributes).group == GROUP and request_kind(attributes).kind in _EXEMPT


def match(hook: Hook, attributes: Attributes, reader: Reader, evaluations: Evaluations) -> Invocation | None:
    """The version and kind with which to call a webhook for a request, or None when the webhook does not match.

    Raises StatusError 404 when the namespace does not exist, and 403 when a condition cannot be evaluated and the
    failurePolicy is Fail."""
    spec = hook.spec
    selector = spec.get("objectSelector")
    if not (selectors.is_empty(selector) or _selects_object(selector or {}, attributes)):
        return None
    invocation = _invocation(spec, attributes, reader)
    if invocation is None or not _selects_namespace(spec.get("namespaceSelector"), attributes, reader):
        return None
    conditions = spec.get("matchConditions") or ()
    if not conditions:
        return invocation
    outcome = evaluate(conditions, evaluations.of(invocation))
    if outcome.false:
        return None
    if outcome.errors:
        if spec.get("failurePolicy") == "Ignore":
            return None
        raise forbidden(attributes.group, attributes.plural, attributes.name, aggregated(outcome.errors))
    return invocation


def _invocation(spec: Object, attributes: Attributes, reader: Reader) -> Invocation | None:
    """The version that the rules select: that of the request, or with matchPolicy Equivalent another served version."""
    rules = rules_for(spec.get("rules") or (), attributes)
    if not rules:
        return None
    kind = request_kind(attributes)
    if any(_rule_matches(rule, attributes, attributes.version) for rule in rules):
        return Invocation(attributes.version, kind)
    if spec.get("matchPolicy") == "Exact":
        return None
    others = [version for version in _served_versions(attributes, reader) if version != attributes.version]
    for rule in rules:
        for version in others:
            if _rule_matches(rule, attributes, version):
                # The kind of a scale subresource does not depend on the version of its parent.
                same = (kind.group, kind.version) == (attributes.group, attributes.version)
                return Invocation(version, Kind(kind.group, version, kind.kind) if same else kind)
    return None


def rules_for(rules: Sequence[Object], attributes: Attributes) -> Sequence[Object]:
    """The rules for the API group and the operation of the request. Most requests match no rule of most webhooks."""
    return [
        rule
        for rule in rules
        if includes(rule.get("apiGroups"), attributes.group) and includes(rule.get("operations"), attributes.operation)
    ]


def _served_versions(attributes: Attributes, reader: Reader) -> Iterator[str]:
    """The served versions of a resource. Only custom resources have more than one in this server."""
    crd = reader.get("apiextensions.k8s.io", "customresourcedefinitions", f"{attributes.plural}.{attributes.group}")
    for version in (crd or {}).get("spec", {}).get("versions", ()):
        if version.get("served"):
            yield version["name"]


def _rule_matches(rule: Object, attributes: Attributes, version: str) -> bool:
    """Whether a rule of `rules_for` matches a version."""
    return (
        includes(rule.get("apiVersions"), version)
        and _has_scope(rule.get("scope") or "*", attributes)
        and any(has_resource(pattern, attributes) for pattern in rule.get("resources") or ())
    )


def has_resource(pattern: str, attributes: Attributes) -> bool:
    """Whether a pattern of a rule, such as `pods/status`, selects the resource and subresource of a request."""
    resource, _, subresource = pattern.partition("/")
    return resource in ("*", attributes.plural) and subresource in ("*", attributes.subresource)


def _has_scope(scope: str, attributes: Attributes) -> bool:
    cluster_scoped = not attributes.namespace or _is_namespace(attributes)
    return scope == "*" or (scope == "Cluster") is cluster_scoped


def _is_namespace(attributes: Attributes) -> bool:
    return attributes.plural == "namespaces" and not attributes.group


def _selects_object(selector: Object, attributes: Attributes) -> bool:
    objects = (attributes.obj, attributes.old)
    return any(selectors.matches(selector, _labels(obj)) for obj in objects if obj is not None)


def _selects_namespace(selector: Object | None, attributes: Attributes, reader: Reader) -> bool:
    """Whether a namespaceSelector selects the namespace of a request. For a create or update of a Namespace, its new
    labels are used. Objects without a namespace are always selected. Raises StatusError 404 for a missing
    namespace."""
    if selectors.is_empty(selector) or not (attributes.namespace or _is_namespace(attributes)):
        return True
    written = _is_namespace(attributes) and not attributes.subresource
    if written and attributes.operation in ("CREATE", "UPDATE"):
        namespace = attributes.obj
    else:
        name = attributes.namespace_or_self
        namespace = reader.get("", "namespaces", name)
        if namespace is None:
            raise not_found(NAMESPACES, name)
    return selectors.matches(selector or {}, _labels(namespace or {}))


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


def _name(configuration: Object) -> str:
    return str(configuration["metadata"]["name"])
