"""How long certificates live. Shared by the plan and the command line."""

import datetime
from dataclasses import dataclass

from altershield.errors import UsageError


@dataclass(frozen=True)
class Lifetimes:
    """`authority` and `leaf` count from when a certificate is made. `settle` is how long a new CA has to stand in
    every `caBundle` before anything is signed by it: API servers follow these by a watch."""

    authority: datetime.timedelta = datetime.timedelta(days=365)
    leaf: datetime.timedelta = datetime.timedelta(days=90)
    settle: datetime.timedelta = datetime.timedelta(seconds=60)

    def __post_init__(self) -> None:
        if not datetime.timedelta(0) < self.settle * 3 <= self.leaf:
            raise UsageError("a certificate must live at least three times as long as a new CA needs to settle")
        if self.leaf * 3 > self.authority:
            raise UsageError("a CA must live at least three times as long as the certificates that it signs")
