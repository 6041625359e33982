"""The texts that the rows of several kinds contain: names, ages, containers, selectors."""

from collections.abc import Iterable

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers.humans import age


def name_of(obj: Object) -> str:
    name: str = obj["metadata"].get("name", "")
    annotations = obj["metadata"].get("annotations") or {}
    default = f"{obj.get('kind', '').lower()}.kubernetes.io/is-default-class"
    return f"{name} (default)" if annotations.get(default) == "true" else name


def spec_of(obj: Object) -> Object:
    return obj.get("spec") or {}


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


def age_of(obj: Object) -> str:
    return age(obj["metadata"].get("creationTimestamp"))


def containers_of(template: Object) -> list[str]:
    """The cells with the names and the images of the containers in a pod template."""
    containers = spec_of(template).get("containers") or []
    return [",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)]


def map_text(labels: Object | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def selector_text(selector: Object | None, empty: str = "<none>") -> str:
    """A LabelSelector as text: `a=b,c in (d,e)`."""
    if not selector:
        return empty
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        words = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, words[expression["operator"]]))
    return ",".join(text for _, text in sorted(terms)) or empty


def first(texts: Iterable[str], most: int, separator: str = ",") -> str:
    """The first `most` texts, and the number of the others."""
    listed = list(texts)
    shown = separator.join(listed[:most])
    return f"{shown} + {len(listed) - most} more..." if len(listed) > most else shown
