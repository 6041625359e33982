"""Label selectors (metav1.LabelSelector)."""

from collections.abc import Mapping

import msgspec

from kube_sandbox import label_selectors
from kube_sandbox.cluster.kinds import LabelSelector, Object, Requirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the selector matches the labels. An empty selector matches everything."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        meets(requirement, labels) for requirement in selector.match_expressions
    )


def with_label(selector: LabelSelector, key: str, value: str) -> Object:
    """The selector with one more label, as JSON."""
    wire: Object = msgspec.to_builtins(selector)
    return {**wire, "matchLabels": {**selector.match_labels, key: value}}


def text(selector: LabelSelector) -> str:
    """The selector as text, in the form of a query parameter: `app=web,tier in (a,b)`."""
    parts = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = ",".join(sorted(one.values))
        forms = {"In": f"{one.key} in ({values})", "NotIn": f"{one.key} notin ({values})", "Exists": one.key}
        parts.append((one.key, forms.get(one.operator, f"!{one.key}")))
    return ",".join(part for _, part in sorted(parts))


def meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet one requirement of a selector."""
    return label_selectors.meets(labels, requirement.key, requirement.operator, requirement.values)
