"""Label selectors as objects hold them (`matchLabels`, `matchExpressions`)."""

from collections.abc import Mapping

from kube_sandbox.apiserver.attributes import Object


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects these labels; an empty one selects everything."""
    equal = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in equal.items()):
        return False
    return all(_meets(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def is_empty(selector: Object | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def _meets(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, operator = requirement["key"], requirement["operator"]
    values = requirement.get("values") or ()
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    return (key in labels) is (operator == "Exists")
