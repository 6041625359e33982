"""20,000 mutated reviews: each one is answered or refused with a 4xx, and memory and metrics do not grow."""

import copy
import gc
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from altershield.process.certificate import Certificate
from gatekeeper.dispatch import decide
from gatekeeper.errors import ReviewError
from gatekeeper.journal import Journal
from gatekeeper.metrics import Metrics

from .reviews import (
    MUTATE,
    ROUTES,
    VALIDATE,
    StaticListers,
    deployment,
    encode,
    release,
    released,
    review,
    route,
    version_of,
    written,
)

REVIEWS = 20_000
TOKENS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\ud800", b"\x00", b"null", b"true", b"-1e999", b"1" * 400,
          "\u202e".encode(), b"\xff", b"[" * 300, b'{"a":' * 300, b"NaN"]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**40,
    "",
    "x" * 300,
    "\u202e",
    "a\nb",
    [],
    [None],
    {},
    {"a": None},
    [[[]]],
]
BODIES = [
    review(deployment()),
    review(released("busybox:2", suspend="1"), released(suspend="1")),
    review(released("busybox:2"), released(), dryRun=True, options={"kind": "UpdateOptions"}),
]


def mutated(chance: random.Random) -> bytes:
    body = copy.deepcopy(chance.choice(BODIES))
    for _ in range(chance.randrange(3)):
        place, keys = body, list(body)
        while True:
            key = chance.choice(keys)
            found = place[key]
            if not (isinstance(found, dict) and found) or chance.random() < 0.2:
                break
            place, keys = found, list(found)
        if chance.random() < 0.3:
            del place[key]
        else:
            place[key] = copy.deepcopy(chance.choice(VALUES))
        if not body:
            break
    data = encode(body)
    for _ in range(chance.randrange(3)):
        at, length = chance.randrange(len(data) + 1), chance.randrange(20)
        data = data[:at] + chance.choice([b"", *TOKENS]) + data[at + chance.choice([0, length]) :]
    return data


async def test_mutated_reviews_are_answered_or_refused_without_growth_of_memory_and_metrics(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    chance = random.Random(20_000)  # noqa: S311  (the same reviews each time)
    listers = StaticListers(releases=release(version_of(deployment()), status="Suspend"))
    metrics = Metrics(Certificate(Path(), Path()), ROUTES.values())
    journal = Journal(metrics)
    served = (route(MUTATE), route(VALIDATE))
    codes = {200: 0, 400: 0}
    objects, shown = [], generate_latest(metrics.registry).count(b"\n")
    for number in range(REVIEWS):
        data, at = mutated(chance), served[number % 2]
        try:
            wire = at.decode(data)
            answer = decide(at, wire, listers)
            json.loads(written(wire.uid, answer))
            journal.note(at.webhook, wire, answer, 0.001)
            codes[200] += 1
        except ReviewError as error:
            codes[error.code] += 1
            journal.refuse(at.webhook, error)
        if number % 5_000 == 4_999:
            journal.flush()
            del data
            gc.collect()
            objects.append(len(gc.get_objects()))
    assert min(codes.values()) > REVIEWS / 10, codes
    assert generate_latest(metrics.registry).count(b"\n") == shown
    assert objects[-1] - objects[0] < REVIEWS / 10, objects  # other tests in this process may leave a few
