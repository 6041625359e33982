"""Which labels a label selector selects, by the rules of the API server. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol


class Expression(Protocol):
    """An entry of `matchExpressions`."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


def selects(required: Mapping[str, str], expressions: Iterable[Expression], labels: Mapping[str, str]) -> bool:
    """Whether a selector with these `matchLabels` and `matchExpressions` selects an object with these labels."""
    return all(labels.get(key) == value for key, value in required.items()) and all(
        _is_met(each, labels) for each in expressions
    )


def _is_met(expression: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return expression.key in labels
        case _:
            return expression.key not in labels
