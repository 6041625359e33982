"""The label selectors of our kinds, as fields. `label_selectors.py` says which labels they select."""

import enum
from typing import Annotated

import msgspec

from altershield.api.schema import doc, pattern, rules

_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

LabelValue = Annotated[str, msgspec.Meta(max_length=63), pattern(f"^({_LABEL})?$")]
LabelKey = Annotated[str, msgspec.Meta(max_length=317), pattern(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_LABEL}$")]


class Operator(enum.StrEnum):
    """The operators of label selectors."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A requirement of a label selector."""

    key: Annotated[LabelKey, doc("The key of the label.")]
    operator: Annotated[Operator, doc("`In`, `NotIn`, `Exists` or `DoesNotExist`.")]
    values: Annotated[
        tuple[LabelValue, ...], msgspec.Meta(max_length=64, description="The values, for `In` and `NotIn`.")
    ] = ()


class Selector(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A label selector. An empty one selects all."""

    match_labels: Annotated[
        dict[str, LabelValue], msgspec.Meta(max_length=64, description="Labels that a workload has to have.")
    ] = {}
    match_expressions: Annotated[
        tuple[
            Annotated[
                Requirement,
                rules(
                    (
                        "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                        "In and NotIn need values; Exists and DoesNotExist have none",
                    )
                ),
            ],
            ...,
        ],
        msgspec.Meta(max_length=64, description="Requirements that the labels of a workload have to meet."),
    ] = ()
