"""Label selectors in objects (`matchLabels`, `matchExpressions`)."""

from collections.abc import Mapping

from kube_sandbox import label_selectors
from kube_sandbox.apiserver.attributes import Object


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects these labels. An empty LabelSelector selects every object."""
    return all(
        label_selectors.meets(labels, key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(
        label_selectors.meets(labels, requirement["key"], requirement["operator"], requirement.get("values") or ())
        for requirement in selector.get("matchExpressions") or ()
    )


def is_empty(selector: Object | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))
