"""Label selectors, as metav1.LabelSelector means them."""

from collections.abc import Mapping

import msgspec

from kube_sandbox import label_selectors
from kube_sandbox.cluster.views import LabelSelector, Object, Requirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected. An empty selector selects everything."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        meets(requirement, labels) for requirement in selector.match_expressions
    )


def with_label(selector: LabelSelector, key: str, value: str) -> Object:
    """The selector, as it goes over the wire, with one more label to match."""
    wire: Object = msgspec.to_builtins(selector)
    return {**wire, "matchLabels": {**selector.match_labels, key: value}}


def is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def text(selector: LabelSelector) -> str:
    """As a query parameter has it: `app=web,tier in (a,b)`."""
    parts = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = ",".join(sorted(one.values))
        forms = {"In": f"{one.key} in ({values})", "NotIn": f"{one.key} notin ({values})", "Exists": one.key}
        parts.append((one.key, forms.get(one.operator, f"!{one.key}")))
    return ",".join(part for _, part in sorted(parts))


def meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one of a selector's requirements is met."""
    return label_selectors.meets(labels, requirement.key, requirement.operator, requirement.values)
