"""The ValidatingAdmissionPolicies that protect objects from deletion, made from the table of protected kinds.

They apply in all namespaces, whether a gatekeeper runs or not. Each policy decides from the object alone. The
gatekeeper decides about `Cascading` of Namespaces and CustomResourceDefinitions, because it has to read other objects
for this.

The API server checks the types of an expression against each kind that the policy matches. So one policy matches only
kinds that have the fields of its expressions. A rule for custom resources matches all versions, because a cluster may
serve any of them. The API server does not check the types of custom resources.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from altershield.api.deletion_protection import (
    CASCADING_LABEL,
    CASCADING_VALUE,
    LABEL,
    MAX_REASON,
    QUOTED_REASON,
    REASON,
    Level,
    refusal,
)
from altershield.api.protected_kinds import KRUISE, PROTECTED_KINDS, Content, ProtectedKind, way_out
from altershield.api.resources import GROUP
from command.install.admission_policy import Object, policy_of_rules, resource_rule, validation
from kube_base.resources import CRDS, NAMESPACES, Resource

UNPROTECT = "unprotect"
"""The RBAC verb for taking the protection off, if the lock is on."""

PREFIX = "protect-"
"""The prefix of the names of these policies, after the name of the release."""

LOCK = f"{PREFIX}lock"
"""The suffix of the names of the policy and the binding of the lock."""


def deletion_policies(*groups: str, lock: bool = False) -> list[Object]:
    """The policies and their bindings. `groups`: API groups, in addition to AlterShield's own, whose custom resources
    the gatekeeper may list. `lock`: taking the protection off needs the verb `unprotect`."""
    kinds = sorted(PROTECTED_KINDS, key=_policy_name)
    protected = [each for name, members in groupby(kinds, _policy_name) for each in _deletion(name, list(members))]
    return [*protected, *_labels(), *_custom_resources(groups), *_warning(), *(_lock() if lock else ())]


def _policy_name(kind: ProtectedKind) -> str:
    """The kinds of one policy have the same fields: `protect-replicas`, `protect-kruise-daemonsets`."""
    field = kind.content.field if kind.content else ()
    name = ("replicas" if field[-1] == "replicas" else kind.resource.plural) if field else "objects"
    return f"{PREFIX}kruise-{name}" if kind.resource.group == KRUISE else f"{PREFIX}{name}"


def _deletion(name: str, kinds: Sequence[ProtectedKind]) -> list[Object]:
    """Refuse the deletion of protected objects of these kinds. A terminating object passes: its deletion has begun."""
    content = kinds[0].content
    variables = {"labels": "oldObject.metadata.labels", "level": _level("variables.labels"), **_TEXTS}
    validations = [_refused(Level.ALWAYS, None, "")]
    if content is not None and content.field:
        variables["count"] = _count(content)
        validations.append(_refused(Level.CASCADING, content, f"{content.noun} {{string(variables.count)}}>0"))
    return policy_of_rules(
        name,
        _rules(kinds, "DELETE"),
        {"protected": _is_labelled("oldObject"), "not-terminating": _NOT_TERMINATING},
        validations,
        variables=variables,
    )


def _refused(level: Level, content: Content | None, because: str) -> Object:
    text = refusal(level, because, "{variables.shown}", "{reason}", way_out(content, "{variables.unprotect}"))
    has_none = " || variables.count <= 0" if content else ""
    quoted = text.replace(QUOTED_REASON.format("{reason}"), "{variables.quoted}")
    return validation(f"variables.level != '{level}'{has_none}", _joined(quoted))


def _labels() -> list[Object]:
    """Refuse unknown values of the labels when they are set or changed. An object that already has an unknown value can
    still be changed."""
    allowed = (
        (LABEL, list(map(str, Level)), " or ".join(Level)),
        (CASCADING_LABEL, [CASCADING_VALUE], f'"{CASCADING_VALUE}"'),
    )
    return policy_of_rules(
        f"{PREFIX}labels",
        _rules(PROTECTED_KINDS, *_WRITES),
        {"labelled": _is_labelled("object")},
        [
            validation(
                f"!('{label}' in variables.new) || variables.new['{label}'] in {values} || "
                f"('{label}' in variables.old && variables.old['{label}'] == variables.new['{label}'])",
                _joined(
                    f"the label {label} of {{variables.shown}} must be {shown}, not \"{{variables.new['{label}']}}\""
                ),
            )
            for label, values, shown in allowed
        ],
        variables={**_OLD_AND_NEW, "shown": _shown("object")},
    )


def _custom_resources(groups: Sequence[str]) -> list[Object]:
    """Refuse `Cascading` on a CustomResourceDefinition whose custom resources the gatekeeper may not list."""
    known = ",".join(("", GROUP, *groups, ""))
    return policy_of_rules(
        f"{PREFIX}groups",
        [resource_rule([CRDS], _WRITES)],
        {"labelled": _is_labelled("object")},
        [
            validation(
                f"!({_SETS_CASCADING}) || '{known}'.contains(',' + object.spec.group + ',')",
                _joined(
                    f"{LABEL}={Level.CASCADING} cannot protect {{variables.shown}}: AlterShield may not list its "
                    "custom resources; add the group {object.spec.group} to the value "
                    f"protection.deletion.customResourceGroups of the chart, or use {Level.ALWAYS}"
                ),
            )
        ],
        variables={**_OLD_AND_NEW, "shown": _shown("object")},
    )


def _warning() -> list[Object]:
    """Warn about `Cascading` on a kind for which it protects nothing."""
    return policy_of_rules(
        f"{PREFIX}warnings",
        _rules([kind for kind in PROTECTED_KINDS if kind.content is None], *_WRITES),
        {"labelled": _is_labelled("object")},
        [
            validation(
                f"!({_SETS_CASCADING})",
                _joined(
                    f"{LABEL}={Level.CASCADING} does not protect {{variables.shown}}: no other object is deleted "
                    f"together with it; use {Level.ALWAYS}"
                ),
            )
        ],
        variables={**_OLD_AND_NEW, "shown": _shown("object")},
        action="Warn",
    )


def _lock() -> list[Object]:
    """Refuse to take the protection off or to weaken it, if the user does not have the verb `unprotect` on the object.

    Subresources that can change labels are matched too.
    """
    allowed = (
        "authorizer.group(request.resource.group).resource(request.resource.resource)"
        f".namespace({_NAMESPACE}).name(oldObject.metadata.name).check('{UNPROTECT}').allowed()"
    )
    return policy_of_rules(
        LOCK,
        [
            *_rules(PROTECTED_KINDS, "UPDATE", subresources=("", "status")),
            resource_rule([NAMESPACES], ("UPDATE",), ("finalize",)),
        ],
        {"protected": _is_labelled("oldObject"), "not-terminating": _NOT_TERMINATING},
        [
            validation(
                "variables.before == '' || variables.before == variables.after || "
                f"variables.after == '{Level.ALWAYS}' || {allowed}",
                _joined(
                    f"{{variables.shown}} is protected from deletion by {LABEL}={{variables.before}}; to take the "
                    f"protection off or to weaken it, you need the RBAC verb {UNPROTECT} on {{{_PLURAL}}}"
                ),
            )
        ],
        variables={
            **_OLD_AND_NEW,
            "before": _level("variables.old"),
            "after": _level("variables.new"),
            "shown": _shown("oldObject"),
        },
    )


_WRITES = ("CREATE", "UPDATE")


def _rules(kinds: Sequence[ProtectedKind], *operations: str, subresources: Sequence[str] = ("",)) -> list[Object]:
    """A rule for each group."""
    groups: dict[tuple[str, str], list[Resource]] = {}
    for kind in kinds:
        version = "*" if kind.resource.group == KRUISE else kind.resource.version
        groups.setdefault((kind.resource.group, version), []).append(kind.resource)
    return [
        resource_rule(resources, operations, subresources, version=version)
        for (_, version), resources in groups.items()
    ]


def _level(labels: str) -> str:
    """The expression for `altershield.api.deletion_protection.level`; empty for None."""
    return (
        f"'{LABEL}' in {labels} && {labels}['{LABEL}'] == '{Level.ALWAYS}' ? '{Level.ALWAYS}' : "
        f"'{LABEL}' in {labels} && {labels}['{LABEL}'] == '{Level.CASCADING}' || "
        f"'{CASCADING_LABEL}' in {labels} && {labels}['{CASCADING_LABEL}'] == '{CASCADING_VALUE}' ? "
        f"'{Level.CASCADING}' : ''"
    )


def _is_labelled(obj: str) -> str:
    labels = f"{obj}.metadata.labels"
    return f"has({labels}) && ('{LABEL}' in {labels} || '{CASCADING_LABEL}' in {labels})"


_NOT_TERMINATING = "!has(oldObject.metadata.deletionTimestamp)"

_OLD_AND_NEW = {
    "new": "has(object.metadata.labels) ? dyn(object.metadata.labels) : dyn({})",
    "old": "request.operation == 'UPDATE' && has(oldObject.metadata.labels) ? dyn(oldObject.metadata.labels) : dyn({})",
}

_SETS_CASCADING = (
    f"({_level('variables.new')}) == '{Level.CASCADING}' && ({_level('variables.old')}) != '{Level.CASCADING}'"
)


def _count(content: Content) -> str:
    """The number in the object; 0 if it is not set."""
    number = "0"
    for path in filter(None, (content.default, content.field)):
        parent, field = f"oldObject.{'.'.join(path[:-1])}", f"oldObject.{'.'.join(path)}"
        number = f"has({parent}) && has({field}) ? {field} : {number}"
    return number


_NAMESPACE = "(has(oldObject.metadata.namespace) ? oldObject.metadata.namespace : '')"
_PLURAL = "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)"


def _shown(obj: str) -> str:
    """The expression for the kind, the namespace and the name: `Deployment shop/web`. It reads the object, because the
    DELETE of a collection has no name in the request. The name of an object that is created can be missing."""
    metadata = f"{obj}.metadata"
    return (
        f"request.kind.kind + ' ' + (has({metadata}.namespace) ? {metadata}.namespace + '/' : '') + "
        f"(has({metadata}.name) ? {metadata}.name : '')"
    )


def _joined(text: str) -> str:
    """The expression for a text with expressions in braces."""
    parts = re.split(r"\{(.*?)\}", text)
    return " + ".join(
        part if index % 2 else f"'{part}'" for index, part in enumerate(parts) if part
    )  # fmt: skip


_UNQUOTABLE = r"r'[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]'"
_TEXTS = {
    "shown": _shown("oldObject"),
    # altershield.api.deletion_protection.unprotect_command
    "unprotect": (
        f"'kubectl label ' + {_PLURAL} + ' ' + oldObject.metadata.name + "
        f"({_NAMESPACE} == '' ? '' : ' -n ' + {_NAMESPACE}) + "
        + " + ".join(f"('{label}' in variables.labels ? ' {label}-' : '')" for label in (LABEL, CASCADING_LABEL))
    ),
    # altershield.api.deletion_protection.quotable; a message must not have line breaks
    "annotation": (
        f"has(oldObject.metadata.annotations) && '{REASON}' in oldObject.metadata.annotations ? "
        f"oldObject.metadata.annotations['{REASON}'] : ''"
    ),
    "cut": (
        f"variables.annotation.matches(r'^(?s:.{{0,{MAX_REASON}}})$') ? variables.annotation : "
        f"variables.annotation.substring(0, {MAX_REASON}) + '…'"
    ),
    "reason": (
        f"(variables.cut.matches({_UNQUOTABLE}) ? "
        f"variables.cut.split('').map(c, c.matches({_UNQUOTABLE}) ? ' ' : c).join('') : variables.cut).trim()"
    ),
    "quoted": f"variables.reason == '' ? '' : {_joined(QUOTED_REASON.format('{variables.reason}'))}",
}
