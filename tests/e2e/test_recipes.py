"""The recipes of docs/release-gates.md, as they stand on the page: the API server accepts them, and they close and open
when the page says so. Time is simulated: the objects that the API server returns are put into the world of the model of
gates, with its gatekeepers and reconcilers."""

import datetime
import json
import zoneinfo
from collections.abc import Callable, Iterator

import msgspec
import pytest
import yaml

from altershield.api import labels
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.namespace import Namespace
from altershield.api.resources import RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_WINDOWS
from kube_base.resources import CONFIG_MAPS, NAMESPACES
from reconciler.gates.calendar_files import CalendarFile
from tests.docs.pages import ROOT, blocks
from tests.support import workloads
from tests.support.kubectl import Kubectl
from tests.unit.reconciler.gates_model.world import Workload, World

PAGE = (ROOT / "docs" / "release-gates.md").read_text()
RECIPES = [
    each.text
    for each in blocks(PAGE[PAGE.index("\n## Recipes") : PAGE.index("\n## Guarded fields")])
    if each.language == "yaml"
]
KINDS = {
    "ConfigMap": (CONFIG_MAPS, CalendarFile),
    "ReleaseFreeze": (RELEASE_FREEZES, ReleaseFreeze),
    "ReleaseLimit": (RELEASE_LIMITS, ReleaseLimit),
    "ReleaseWindow": (RELEASE_WINDOWS, ReleaseWindow),
}
START = 1_795_392_000  # Monday, 2026-11-23T00:00Z


def at(text: str, zone: str = "UTC") -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp()


class Shop:
    """Workloads in the namespaces `shop`, whose label `department` is `shop`, and `bank`."""

    def __init__(self) -> None:
        self.world = World(START, (0.0, 0.0))
        own = {"department": "shop", labels.GOVERNED: labels.GOVERNED_VALUE}
        found = self.world.api.found(NAMESPACES, "", "shop")
        labelled = Namespace(msgspec.structs.replace(found.metadata, labels=own))
        self.world.api.store((NAMESPACES.plural, "", "shop"), labelled)
        self.images = 0

    def apply(self, recipe: str, kubectl: Kubectl) -> None:
        """The API server reads the text of the page. Nothing is stored there: other tests release at any time."""
        sent = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        answer = kubectl(*sent, stdin=recipe)
        while answer.strip():  # an object after the other
            each, end = json.JSONDecoder().raw_decode(answer)
            answer = answer[end:].lstrip()
            resource, type_ = KINDS[each["kind"]]
            self.world.api.put(resource, msgspec.convert(each, type_))
        self.world.settle()

    def release(self, name: str, *, namespace: str = "shop", then: str = "", **own: str) -> str:
        """Release a new version, and the first one before if there is none. Returns the denial; empty: admitted."""
        world = self.world
        workload = world.workloads.get((namespace, name))
        if workload is None:
            workload = world.workloads[namespace, name] = Workload(namespace, name)
            assert not self._send(workload, own)
            world.process(workload)
            world.succeed(workload)
            world.settle()
        text = self._send(workload, own)
        if not text:
            world.process(workload)
            world.settle()
            {"": lambda _: None, "succeed": world.succeed, "fail": world.fail}[then](workload)
            world.settle()
        return text

    def _send(self, workload: Workload, own: dict[str, str]) -> str:
        self.images += 1
        template, old = workloads.template(workload.name, f"image-{self.images}"), self.world.stored(workload)
        new = self.world.manifest(workload, template, {"app": workload.name, **own})
        workload.created = old is None
        stamped, answer = self.world.send(self.world.gatekeepers[0], new, old, dry_run=False)
        if answer.denial is None:
            self.world.store(workload, stamped)
        return answer.denial.message if answer.denial is not None else ""

    def go_to(self, time: float) -> None:
        self.world.pass_time(time - self.world.now)


def pace(shop: Shop) -> None:
    first = [f"w{number}" for number in range(5)]
    assert [shop.release(name) for name in first] == [""] * 5
    assert "5 releases are under way (at most 5)" in shop.release("w5")
    for name in first:
        shop.world.succeed(shop.world.workloads["shop", name])
    shop.world.settle()
    began = shop.world.now
    # each workload of this test is created by a release, which a limit does not judge by default
    assert [shop.release(f"x{number}", then="succeed") for number in range(5)] == [""] * 5
    assert "10 releases began within 3600 seconds (at most 10)" in shop.release("w0")
    shop.go_to(began + 3600)
    assert shop.release("w0") == ""


def fleet(shop: Shop) -> None:
    for name in ("a", "b"):
        assert shop.release(name, then="fail") == ""
    assert shop.release("d", then="succeed") == ""
    assert shop.release("c", namespace="bank", then="fail") == ""
    assert "the fuse of the ReleaseLimit fleet tripped: releases of 3 workloads failed" in shop.release("d")


def quiet(shop: Shop) -> None:
    rests = "succeeded less than 1800 seconds ago"
    assert rests in shop.release("core", tier="core"), "it has just been created"
    shop.go_to(shop.world.now + 1800)
    assert shop.release("core", tier="core", then="succeed") == ""
    assert shop.release("other", tier="web", then="succeed") == ""
    done = shop.world.now
    shop.go_to(done + 1700)
    assert rests in shop.release("core", tier="core")
    assert shop.release("other", tier="web") == ""
    shop.go_to(done + 1801)
    assert shop.release("core", tier="core") == ""


def times(zone: str, *expected: tuple[str, str, bool], namespace: str = "shop", **own: str) -> Callable[[Shop], None]:
    """At each time of this zone, a release passes, or is denied with a text. A weekday is only for readers."""

    def check(shop: Shop) -> None:
        for time, text, is_open in expected:
            shop.go_to(at(time, zone))
            found = shop.release("web", namespace=namespace, **own)
            assert (found == "") is is_open, f"{time}: {found}"
            assert text in found

    return check


def weekend(shop: Shop) -> None:
    why = "no releases at weekends"
    times(
        "Asia/Shanghai",
        ("2026-11-27 23:59", "", True),
        ("2026-11-28 00:00", why, False),
        ("2026-11-29 23:59", why, False),
        ("2026-11-30 00:00", "", True),
    )(shop)


def business_hours(shop: Shop) -> None:
    """On Tuesday, Shanghai has 1:00 to 9:00 UTC, Berlin 8:00 to 15:00 without the last hour, New York 14:00 to
    22:00."""
    times(
        "UTC",
        ("2026-11-24 00:59", "releases may begin in its times only", False),
        ("2026-11-24 01:00", "", True),
        ("2026-11-24 09:00", "", True),
        ("2026-11-24 14:59", "", True),
        ("2026-11-24 21:59", "", True),
        ("2026-11-24 22:00", "", False),
        ("2026-11-28 12:00", "", False),
        ("2026-11-29 12:00", "", False),
        ("2026-11-30 01:00", "", True),
    )(shop)


def sale(shop: Shop) -> None:
    times(
        "Asia/Shanghai",
        ("2026-12-19 17:59", "", True),
        ("2026-12-19 18:00", "sale week", False),
        ("2026-12-20 00:00", "sale week", False),
        ("2026-12-27 23:59", "sale week", False),
    )(shop)
    assert shop.release("web", namespace="bank") == "", "another department"
    times("Asia/Shanghai", ("2026-12-28 00:00", "", True))(shop)


def holidays(shop: Shop) -> None:
    times(
        "Asia/Shanghai",
        ("2027-02-04 23:59", "", True),
        ("2027-02-05 00:00", "public holiday", False),
        ("2027-02-11 23:59", "public holiday", False),
        ("2027-02-12 00:00", "", True),
    )(shop)


def end_of_year(shop: Shop) -> None:
    why = "end of the year"
    for time, core, other in (
        ("2026-12-28 23:59", "", ""),
        ("2026-12-29 00:00", why, ""),
        ("2026-12-30 00:00", why, why),
        ("2027-01-01 23:59", why, why),
        ("2027-01-02 00:00", "", ""),
    ):
        shop.go_to(at(time))
        for name, text in (("core", core), ("web", other)):
            found = shop.release(name, tier=name)
            assert bool(found) is bool(text), f"{time} {name}: {found}"
            assert text in found


PROMISES = {
    "pace": pace,
    "fleet": fleet,
    "quiet": quiet,
    "weekend": weekend,
    "berlin": business_hours,
    "sale": sale,
    "holidays": holidays,
    "end-of-year-core": end_of_year,
}
"""What the page promises of each recipe, by the name of its first object."""


@pytest.fixture
def shop() -> Iterator[Shop]:
    found = Shop()
    yield found
    found.world.close()


def first_name(recipe: str) -> str:
    return str(next(yaml.safe_load_all(recipe))["metadata"]["name"])


@pytest.mark.parametrize("recipe", RECIPES, ids=first_name)
def test_a_recipe_does_what_the_page_promises(recipe: str, installed: None, admin: Kubectl, shop: Shop) -> None:
    ann = Kubectl(admin.kubeconfig, SYSTEM_NAMESPACE, "--as=ann", "--as-group=system:masters")
    shop.apply(recipe, ann)
    PROMISES[first_name(recipe)](shop)


def test_each_promise_is_of_a_recipe() -> None:
    assert sorted(map(first_name, RECIPES)) == sorted(PROMISES)
