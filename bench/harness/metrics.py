"""Metrics of a process, as numbers by name and labels."""

from collections import Counter

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

Series = tuple[str, tuple[tuple[str, str], ...]]
"""The name and the sorted labels."""
Samples = dict[Series, float]


async def scraped(port: int) -> Samples:
    """The metrics of a process."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return samples(await answer.text())


def samples(text: str) -> Samples:
    """The samples of a text in the format of Prometheus."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found: Samples, name: str) -> list[tuple[dict[str, str], float]]:
    """The labels and the values of the series with this name."""
    return [(dict(labels), value) for (each, labels), value in found.items() if each == name]


def summed(found: Samples, name: str) -> float:
    return sum(value for _, value in of(found, name))


def grown(before: Samples, now: Samples) -> Samples:
    return {key: value - before.get(key, 0.0) for key, value in now.items()}


def quantile(buckets: Samples, name: str, share: float) -> float:
    """A quantile of a histogram of the webhooks for Deployments: the upper bound of its bucket."""
    counts: Counter[float] = Counter()
    for own, value in of(buckets, f"{name}_bucket"):
        if "mdeployment" in own.get("name", "") or "vdeployment" in own.get("name", ""):
            counts[float(own["le"])] += int(value)
    total = max(counts.values(), default=0)
    return min((bound for bound, count in counts.items() if total and count >= share * total), default=0.0)
