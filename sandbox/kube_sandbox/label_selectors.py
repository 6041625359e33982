"""The rules of label selectors, for the API and for the simulated controllers.

They are those of `k8s.io/apimachinery`, `pkg/labels`. `Gt` and `Lt` exist in query strings and in node affinity only.
"""

import re
from collections.abc import Collection, Mapping

_INTEGER = re.compile(r"[+-]?\d{1,18}")


def is_integer(text: str) -> bool:
    """Whether `Gt` and `Lt` can compare this value."""
    return _INTEGER.fullmatch(text) is not None


def meets(labels: Mapping[str, str], key: str, operator: str, values: Collection[str]) -> bool:
    """Whether labels meet one requirement. `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt. The API server
    refuses any other operator; here it matches nothing."""
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            bound = next(iter(values), "")
            if value is None or not is_integer(value) or not is_integer(bound):
                return False
            return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    return False
