"""RBAC: decides with the stored roles and bindings whether a user may make a request. Kubelets also have the rights of
`node_rules`.

Rules, order and texts follow kube-apiserver's `plugin/pkg/auth/authorizer/rbac` and `pkg/registry/rbac/validation`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kube_sandbox.apiserver import errors
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader, User
from kube_sandbox.apiserver.auth import node_rules
from kube_sandbox.apiserver.auth.authentication import MASTERS
from kube_sandbox.apiserver.gotext import aggregated, quoted

GROUP = "rbac.authorization.k8s.io"

Rule = dict[str, Any]
"""A PolicyRule."""

_SANITIZED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str


class Authorizer:
    """Authorizes requests with RBAC. Members of `system:masters` may make any request."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def authorize(self, attributes: Attributes) -> str | None:
        """None if the request is allowed, else the errors of RBAC as text, which is usually empty."""
        decision = self.decide(attributes)
        return None if decision.allowed else decision.reason

    def decide(self, attributes: Attributes) -> Decision:
        if MASTERS in attributes.user.groups:
            return Decision(True, "")
        if node_rules.is_node(attributes.user) and any(allows(rule, attributes) for rule in node_rules.RULES):
            return Decision(True, "")
        problems = []
        for source, rule in self._granted(attributes.user, attributes.namespace_or_self):
            if rule is None:
                problems.append(source)
            elif allows(rule, attributes):
                return Decision(True, f"RBAC: allowed by {source}")
        return Decision(False, f"RBAC: {aggregated(problems)}" if problems else "")

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """The rules for a user in a namespace, and the error texts for roles that do not exist."""
        granted = list(self._granted(user, namespace))
        return [rule for _, rule in granted if rule is not None], [why for why, rule in granted if rule is None]

    def role_rules(self, reference: Object, namespace: str) -> list[Rule] | None:
        """The rules of the role in a `roleRef`; None if the role does not exist."""
        if reference["kind"] == "Role":
            role = self._reader.get(GROUP, "roles", reference["name"], namespace)
        else:
            role = self._reader.get(GROUP, "clusterroles", reference["name"])
        return None if role is None else role.get("rules") or []

    def _granted(self, user: User, namespace: str) -> Iterator[tuple[str, Rule | None]]:
        """The rules for a user, each with a text about its source. For a missing role: an error text and None."""
        scopes: list[tuple[str, str, str]] = [("ClusterRoleBinding", "clusterrolebindings", "")]
        if namespace:
            scopes.append(("RoleBinding", "rolebindings", namespace))
        for kind, plural, scope in scopes:
            for binding in self._reader.list(GROUP, plural, scope):
                subject = next((s for s in binding.get("subjects") or () if _is_user(user, s, scope)), None)
                if subject is None:
                    continue
                reference = binding["roleRef"]
                rules = self.role_rules(reference, scope)
                if rules is None:
                    yield f"{reference['kind'].lower()}.{GROUP} {quoted(reference['name'])} not found", None
                    continue
                source = _source(kind, binding, subject)
                yield from ((source, rule) for rule in rules)


def forbidden(attributes: Attributes, reason: str) -> errors.StatusError:
    """403 for a request without permission."""
    user = quoted(attributes.user.name)
    if attributes.path:
        what = f"User {user} cannot {attributes.verb} path {quoted(attributes.path)}"
    else:
        resource = attributes.plural + (f"/{attributes.subresource}" if attributes.subresource else "")
        namespace = attributes.namespace_or_self
        where = f"in the namespace {quoted(namespace)}" if namespace else "at the cluster scope"
        group = quoted(attributes.group)
        what = f"User {user} cannot {attributes.verb} resource {quoted(resource)} in API group {group} {where}"
    what = what.translate(_SANITIZED)
    return errors.forbidden(
        attributes.group, attributes.plural, attributes.name, f"{what}: {reason}" if reason else what
    )


def allows(rule: Rule, attributes: Attributes) -> bool:
    """Whether a PolicyRule allows a request."""
    if not includes(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        return any(matches_url(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    return (
        includes(rule.get("apiGroups"), attributes.group)
        and _matches_resource(rule.get("resources") or (), attributes.plural, attributes.subresource)
        and (not rule.get("resourceNames") or attributes.name in rule["resourceNames"])
    )


def includes(values: Collection[str] | None, wanted: str) -> bool:
    """Whether a list in a rule contains a value or `*`."""
    return values is not None and ("*" in values or wanted in values)


def _matches_resource(patterns: Sequence[str], plural: str, subresource: str) -> bool:
    wanted = {"*", f"{plural}/{subresource}", f"*/{subresource}"} if subresource else {"*", plural}
    return not wanted.isdisjoint(patterns)


def matches_url(pattern: str, path: str) -> bool:
    """Whether a non-resource URL of a rule matches a path. A `*` at the end matches any suffix."""
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _is_user(user: User, subject: Object, namespace: str) -> bool:
    """Whether the subject of a binding is this user. The default namespace of a ServiceAccount is the binding's."""
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return bool(user.name == name)
    if kind == "Group":
        return name in user.groups
    scope = subject.get("namespace") or namespace
    return bool(kind == "ServiceAccount" and scope and user.name == f"system:serviceaccount:{scope}:{name}")


def _source(kind: str, binding: Object, subject: Object) -> str:
    """The source of a rule as text, as in the reason of a SubjectAccessReview."""
    metadata, reference = binding["metadata"], binding["roleRef"]
    scope = metadata.get("namespace", "")
    name = f"{metadata['name']}/{scope}" if scope else metadata["name"]
    subject_name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        subject_name = f"{subject_name}/{subject.get('namespace') or scope}"
    role = f"{reference['kind']} {quoted(reference['name'])}"
    return f"{kind} {quoted(name)} of {role} to {subject['kind']} {quoted(subject_name)}"
