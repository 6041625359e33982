"""Lifetimes of certificates, for the plan and the command line."""

import datetime
from dataclasses import dataclass

from kube_base.errors import UsageError


@dataclass(frozen=True)
class Lifetimes:
    """The lifetimes of a CA (`authority`) and of a serving certificate (`leaf`), and the settling time: how long every
    `caBundle` must contain a new CA before it signs, because API servers learn of the bundle by a watch."""

    authority: datetime.timedelta = datetime.timedelta(days=365)
    leaf: datetime.timedelta = datetime.timedelta(days=90)
    settle: datetime.timedelta = datetime.timedelta(seconds=60)

    def __post_init__(self) -> None:
        if not datetime.timedelta(0) < self.settle * 3 <= self.leaf:
            raise UsageError("a certificate must live at least three times as long as the settling time of a new CA")
        if self.leaf * 3 > self.authority:
            raise UsageError("a CA must live at least three times as long as the certificates that it signs")
