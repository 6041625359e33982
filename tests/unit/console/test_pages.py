"""The size of a page is bounded, and a page says what it does not show."""

import re
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from altershield.views.gates.documents import gate_list
from altershield.views.names import WorkloadName
from altershield.views.why.model import CheckRun, ClosedGate, Decided, EarlierVersion, PodWords, ReleaseExplanation
from altershield.views.why.reading import Explained
from console.local import serving
from console.pages import attention, gates, workload
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration

HOSTILE = "<\"'&" * 256
"""As long as a reason may be; each character is escaped."""


def explained() -> Explained:
    values: dict[str, Any] = dict.fromkeys(ReleaseExplanation.__struct_fields__, "")
    nothing = dict.fromkeys(("since", "released", "suspension", "policy", "pause", "steps", "request"))
    lists: dict[str, tuple[object, ...]] = {
        "failed_pods": tuple(PodWords(f"web-{number}", HOSTILE) for number in range(5000)),
        "checks": (CheckRun("errors", "step", "web", "Failed", ""),) * 51,
        "gates": (ClosedGate("ReleaseFreeze", "shop", "night", True, None, None, "", "night is closed"),) * 52,
        "decisions": (Decided(None, "hold", "ann", "", "Done", "held"),) * 23,
        "earlier": (EarlierVersion("a" * 32, "web:1", False, None, ""),) * 24,
        "blocking_pods": (),
        "down_pods": (),
        "restarted_pods": (),
        "advice": (),
    }
    name = WorkloadName("apps/v1", "Deployment", "shop", "web")
    return Explained([ReleaseExplanation(**{**values, **nothing, **lists, "workload": name})], [])


async def read(path: str) -> str:
    """The page, for a reader who has signed in."""
    async with (
        Client(Configuration("http://127.0.0.1:1")) as client,
        serving(client, 0, "system") as new_address,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        address = new_address()
        async with session.get(address):
            pass
        async with session.get(address.rpartition("/sign-in/")[0] + path) as answer:
            assert answer.status == 200
            return await answer.text()


def answering(value: object) -> Callable[..., Any]:
    async def answer(*_: object) -> object:
        return value

    return answer


async def test_page_of_5000_failing_pods_shows_50_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "explain", answering(explained()))
    text = await read("/ns/shop/deployment/web")
    assert text.count("<bdi>web-") == 50
    found = re.findall(r"(\d+) more (\w+) are not shown", text)
    assert found == [("1", "checks"), ("2", "gates"), ("4950", "pods"), ("3", "actions"), ("4", "versions")]
    assert len(text.encode()) <= 300_000


async def test_first_page_cuts_long_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    row = attention.Row("shop", "Deployment", "web", "a1", HOSTILE, "failed", True, 0, 1, 0, "3 min", HOSTILE)
    found = {"namespace": "", "rows": [row] * attention.MAX_ROWS, "more": 0, "summary": (), "nothing": ""}
    monkeypatch.setattr(attention, "page", answering(found))
    text = await read("/")
    assert text.count("<tr>") == attention.MAX_ROWS + 1
    assert len(text.encode()) <= 2_000_000


@pytest.mark.parametrize(("unread", "open_"), [((), True), (("system",), False)])
async def test_gates_that_are_not_read_are_not_open(
    monkeypatch: pytest.MonkeyPatch, unread: tuple[str, ...], *, open_: bool
) -> None:
    monkeypatch.setattr(gates, "page", answering({"namespace": "shop", "of": gate_list([], unread)}))
    text = await read("/gates/shop")
    assert ("releases may begin at any time" in text) is open_
    assert ("some may be missing" in text) is not open_
