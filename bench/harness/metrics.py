"""Metrics of a process, as numbers by name and labels."""

import json
from collections import Counter
from collections.abc import Mapping

import aiohttp
from prometheus_client.parser import text_string_to_metric_families


async def scraped(port: int) -> dict[str, float]:
    """The metrics of a process, by name and labels."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return samples(await answer.text())


def samples(text: str) -> dict[str, float]:
    """The samples of a text in the format of Prometheus; a key is the name, then the sorted list of labels."""
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def summed(found: Mapping[str, float], prefix: str) -> float:
    return sum(value for key, value in found.items() if key.startswith(prefix))


def quantile(buckets: Mapping[str, float], share: float) -> float:
    """A quantile of a histogram: the upper bound of its bucket."""
    counts: Counter[float] = Counter()
    for key, value in buckets.items():
        own = dict(labels_of(key))
        if "mdeployment" in own.get("name", "") or "vdeployment" in own.get("name", ""):
            counts[float(own["le"])] += int(value)
    total = max(counts.values(), default=0)
    return min((bound for bound, count in counts.items() if total and count >= share * total), default=0.0)


def labels_of(key: str) -> list[tuple[str, str]]:
    """The labels in a key of `samples`."""
    found: list[tuple[str, str]] = json.loads(
        key[key.index("[") :].replace("(", "[").replace(")", "]").replace("'", '"')
    )
    return found
