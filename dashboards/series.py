"""Series in a query result of Prometheus, and functions that split them for drawing."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

STEP = 1  # seconds between two samples of a range query


class Series(NamedTuple):
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]
    """Pairs of Unix seconds and value."""

    @property
    def last(self) -> float:
        return self.samples[-1][1]


def numbers(series: Series) -> list[float]:
    return [value for _, value in series.samples if not math.isnan(value)]


def unbroken(samples: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The samples, split where a value is missing."""
    parts: list[list[tuple[float, float]]] = []
    before = -math.inf
    for at, value in samples:
        if math.isnan(value):
            continue
        if at - before > 1.5 * STEP or not parts:
            parts.append([])
        parts[-1].append((at, value))
        before = at
    return parts


def runs(samples: Sequence[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    """The samples, split where a value is missing and where the value changes. A part also contains the first sample of
    the next value, so that the part is drawn up to this sample."""
    for part in unbroken(samples):
        run = part[:1]
        for each in part[1:]:
            run.append(each)
            if each[1] != run[0][1]:
                yield run
                run = [each]
        yield run
