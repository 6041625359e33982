"""The check of writes of roles and bindings: users may grant only the permissions that they hold.

The rules are those of kube-apiserver's `pkg/registry/rbac/*/policybased` and
`component-helpers/auth/rbac/validation`.
"""

from collections.abc import Iterator
from dataclasses import replace

from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth.authentication import MASTERS
from kube_sandbox.apiserver.auth.authorization import GROUP, Authorizer, Rule, matches_url
from kube_sandbox.apiserver.errors import StatusError, forbidden
from kube_sandbox.apiserver.gotext import quoted, quoted_list

_EVERYTHING: list[Rule] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_COLLECTION_FIELDS = ("ownerReferences", "finalizers", "managedFields")


def check(attributes: Attributes, authorizer: Authorizer) -> None:
    """Check a create or update of a Role, ClusterRole, RoleBinding or ClusterRoleBinding. Other requests pass.

    Raises StatusError 403 when the user would grant permissions that the user does not hold, and 404 when the role of a
    binding does not exist."""
    obj = attributes.obj
    if attributes.group != GROUP or obj is None or MASTERS in attributes.user.groups:
        return
    if attributes.old is not None and _only_collection_changed(obj, attributes.old):
        return
    if attributes.plural in ("roles", "clusterroles"):
        _check_role(attributes, obj, authorizer)
    else:
        _check_binding(attributes, obj, authorizer)


def _check_role(attributes: Attributes, role: Object, authorizer: Authorizer) -> None:
    if authorizer.authorize(replace(attributes, verb="escalate", subresource="")) is None:
        return
    _check_held(attributes, role.get("rules") or [], authorizer)
    if any(_aggregates(version) for version in (role, attributes.old) if version):
        try:
            _check_held(attributes, _EVERYTHING, authorizer)
        except StatusError as error:
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise forbidden(GROUP, attributes.plural, attributes.name, why) from error


def _check_binding(attributes: Attributes, binding: Object, authorizer: Authorizer) -> None:
    reference = binding.get("roleRef") or {}
    plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.get("kind", ""))
    if plural is None or not reference.get("name"):
        return  # validation refuses it
    bind = replace(attributes, verb="bind", plural=plural, name=reference["name"], subresource="")
    if authorizer.authorize(bind) is None:
        return
    rules = authorizer.role_rules(reference, attributes.namespace)
    if rules is None:
        # This text of the real server combines the resource of the binding with the name of the role.
        message = f"{attributes.plural}.{GROUP} {quoted(reference['name'])} not found"
        details = {"name": reference["name"], "group": GROUP, "kind": attributes.plural}
        raise StatusError(404, message, details=details)
    _check_held(attributes, rules, authorizer)


def _check_held(attributes: Attributes, rules: list[Rule], authorizer: Authorizer) -> None:
    held, problems = authorizer.rules_for(attributes.user, attributes.namespace)
    missing = [atom for rule in rules for atom in _split(rule) if not any(_covers(own, atom) for own in held)]
    if not missing:
        return
    user = attributes.user
    why = (
        f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions "
        "not currently held:\n" + "\n".join(sorted({_rule_text(rule) for rule in _merged(missing)}))
    )
    if problems:
        why += f"; resolution errors: [{' '.join(problems)}]"
    raise forbidden(GROUP, attributes.plural, attributes.name, why)


def _split(rule: Rule) -> Iterator[Rule]:
    """Split a rule into rules with one verb and one resource (and one name, if any), or one verb and one URL."""
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                atom = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames") or ()
                yield from ({**atom, "resourceNames": [name]} for name in names) if names else (atom,)
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"nonResourceURLs": [url], "verbs": [verb]} for verb in rule.get("verbs") or ())


def _covers(own: Rule, atom: Rule) -> bool:
    if not {"*", atom["verbs"][0]} & set(own["verbs"]):
        return False
    if urls := atom.get("nonResourceURLs"):
        return any(matches_url(pattern, urls[0]) for pattern in own.get("nonResourceURLs") or ())
    resource, names = atom["resources"][0], own.get("resourceNames")
    resources = {"*", resource} | ({f"*/{resource.split('/', 1)[1]}"} if "/" in resource else set())
    return (
        bool({"*", atom["apiGroups"][0]} & set(own.get("apiGroups") or ()))
        and bool(resources & set(own.get("resources") or ()))
        and (not names or atom.get("resourceNames", [None])[0] in names)
    )


def _merged(rules: list[Rule]) -> list[Rule]:
    """Merge the rules for the same resource into one rule with all their verbs."""
    merged: dict[tuple[str, str, str], Rule] = {}
    others = []
    for rule in rules:
        if "resources" not in rule:
            others.append(rule)
            continue
        key = (rule["apiGroups"][0], rule["resources"][0], *(rule.get("resourceNames") or [""]))
        kept = merged.setdefault(key, {**rule, "verbs": []})
        kept["verbs"] = [*kept["verbs"], *rule["verbs"]]
    return [*others, *merged.values()]


def _rule_text(rule: Rule) -> str:
    parts = [
        f"{title}:{quoted_list(rule[key])}"
        for key, title in (
            ("apiGroups", "APIGroups"),
            ("resources", "Resources"),
            ("nonResourceURLs", "NonResourceURLs"),
            ("resourceNames", "ResourceNames"),
            ("verbs", "Verbs"),
        )
        if rule.get(key)
    ]
    return "{" + ", ".join(parts) + "}"


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collection_changed(new: Object, old: Object) -> bool:
    """Whether an update changes only fields that the garbage collector writes. Such an update needs no permission other
    than the write itself."""

    def without_collection_fields(obj: Object) -> Object:
        metadata = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTION_FIELDS}
        return {**obj, "metadata": metadata}

    return without_collection_fields(new) == without_collection_fields(old)
