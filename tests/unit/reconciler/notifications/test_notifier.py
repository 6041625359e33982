"""Notifications of the releases in the caches, to real HTTP servers."""

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from altershield.api.change_pod import ChangePodStatus
from altershield.api.change_workload import MAX_NOTIFIED, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.policy import AppliedPolicy
from altershield.api.workload_requests import Action
from kube_base.access.errors import ConflictError
from kube_base.access.queue import WorkQueue
from kube_base.times import rfc3339
from reconciler.cluster import batch
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.release import Release
from reconciler.notifications import lane
from reconciler.notifications.metrics import notifications
from reconciler.notifications.notifier import Delivery, Notifier
from reconciler.outbound.outbound_client import Outbound
from reconciler.receivers import file as receivers
from reconciler.receivers.file import ReceiversFile, allowed
from tests.support.polling import HANG, until
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW, V1
from tests.unit.reconciler.filled import empty_caches, namespace, newer, put, remove
from tests.unit.reconciler.notifications import schemas
from tests.unit.reconciler.notifications.receiving import Inbox

SUSPENDED = ChangeWorkloadStatus(WorkloadState.SUSPEND, entry_time_unix=NOW)


def release(
    status: ChangeWorkloadStatus = SUSPENDED, name: str = "sleep", notify: tuple[str, ...] | None = None
) -> Release:
    made = builders.release(V1, status, name=name)
    spec = msgspec.structs.replace(made.spec, policy=AppliedPolicy(notify=notify))
    return projection.read(msgspec.json.encode(msgspec.structs.replace(made, spec=spec)))


class Store:
    """Stands for the writer: it puts the status into the cache, as the API server's answer does."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.conflicts = 0
        self.writes = 0

    async def save_release(self, old: Release, status: ChangeWorkloadStatus, *, lists: bool) -> Release:
        assert not lists
        if self.conflicts:
            self.conflicts -= 1
            raise ConflictError("changed", code=409)
        self.writes += 1
        new: Release = newer(old, int(old.metadata.resource_version) + 1, status=status)
        put(self._caches, new)
        return new


class Cluster:
    def __init__(self, caches: Caches, directory: Path) -> None:
        self.caches = caches
        self.store = Store(caches)
        self.registry = CollectorRegistry()
        self.sent = notifications(self.registry)
        self.file = directory / "receivers.yaml"
        self.time = float(NOW)

    def configure(self, *receivers: dict[str, Any], cluster: str = "") -> None:
        self.file.write_text(json.dumps({"receivers": receivers, "cluster": cluster}))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Notifier]:
        """A reconciler that leads."""
        file = ReceiversFile(self.file)
        queue: WorkQueue[Key] = WorkQueue()
        async with Outbound(allowed(file.current.receivers)) as outbound:
            notifier = Notifier(
                self.caches,
                self.store,  # type: ignore[arg-type]
                self.sent,
                lambda: self.time,
                Delivery(file, outbound),
                queue.add,
            )
            self.caches.releases.add_handler(notifier.on_release)
            self.caches.batches.add_handler(notifier.on_batch)

            async def work() -> None:
                while True:
                    key = await queue.get()
                    try:
                        await notifier.reconcile(key)
                    except ConflictError:
                        queue.add_rate_limited(key)
                    queue.done(key)

            tasks = [asyncio.create_task(notifier.run()), asyncio.create_task(work())]
            try:
                yield notifier
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                assert [each for each in results if not isinstance(each, asyncio.CancelledError)] == []

    def notified(self, name: str = "sleep") -> tuple[str, ...]:
        found = self.caches.releases.get("default", release(name=name).metadata.name)
        return found.status.notified if found is not None else ()

    def count(self, type_: str, result: str) -> float:
        labels = {"type": type_, "result": result}
        return self.registry.get_sample_value("altershield_notifications_total", labels) or 0.0


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with empty_caches() as caches:
        put(caches, namespace())
        yield Cluster(caches, tmp_path)


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with Inbox().serving() as made:
        yield made


def slack(inbox: Inbox, name: str = "team", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "slack", "url": f"{inbox.url}/{name}", **more}


def alertmanager(inbox: Inbox) -> dict[str, Any]:
    return {"name": "alerts", "type": "alertmanager", "url": inbox.url}


@pytest.mark.parametrize(("fingerprint", "told"), [(V1, f"{V1} (sleep:2). "), ("f" * 32, f"{V1}. ")])
async def test_images_are_told_if_the_workload_still_has_the_template_of_the_version(
    cluster: Cluster, inbox: Inbox, fingerprint: str, told: str
) -> None:
    workload = msgspec.structs.replace(builders.workload(V1), fingerprint=fingerprint, images=(("sleep", "sleep:2"),))
    cluster.configure(slack(inbox))
    async with cluster.running():
        put(cluster.caches, workload, release())
        await until(cluster.notified)
    assert f"Version {told}" in inbox.texts[0]


async def test_suspension_is_told_and_stored_once(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(cluster.notified)
        put(cluster.caches, newer(cluster.caches.releases.all()[0], 9))
        await asyncio.sleep(0.1)
    assert cluster.notified() == (f"suspended/{NOW}/team",)
    assert len(inbox.requests) == cluster.store.writes == 1
    assert "Deployment default/sleep failed its verification" in inbox.texts[0]
    assert cluster.count("slack", "sent") == 1


async def test_release_that_succeeds_costs_no_request_and_no_write(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox), alertmanager(inbox))
    async with cluster.running():
        put(cluster.caches, release(ChangeWorkloadStatus(WorkloadState.SUCCESS, entry_time_unix=NOW)))
        await asyncio.sleep(0.1)
    assert inbox.requests == []
    assert cluster.store.writes == 0


async def test_new_leader_tells_only_what_is_not_stored(cluster: Cluster, inbox: Inbox) -> None:
    put(cluster.caches, release(), release(name="other"))
    cluster.configure(slack(inbox))
    async with cluster.running():
        await until(lambda: cluster.notified() and cluster.notified("other"))
    cluster.configure(slack(inbox), slack(inbox, "second"))
    async with cluster.running():
        await until(lambda: len(cluster.notified()) == len(cluster.notified("other")) == 2)
    assert sorted(path for path, _, _ in inbox.requests) == ["/second", "/second", "/team", "/team"]


async def test_conflict_of_the_write_sends_nothing_twice(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox))
    cluster.store.conflicts = 3
    async with cluster.running():
        put(cluster.caches, release())
        await until(cluster.notified)
    assert len(inbox.requests) == 1


async def test_crash_between_sending_and_storing_repeats_it_once_with_the_same_id(
    cluster: Cluster, inbox: Inbox
) -> None:
    cluster.configure({"name": "tools", "type": "cloudevents", "url": inbox.url})
    cluster.store.conflicts = 10**9
    put(cluster.caches, release())
    async with cluster.running():
        await until(lambda: inbox.requests)
    cluster.store.conflicts = 0
    async with cluster.running():
        await until(cluster.notified)
    async with cluster.running():
        await asyncio.sleep(0.1)
    assert len(inbox.requests) == 2
    assert len({body["id"] for _, _, body in inbox.requests}) == 1


async def test_receiver_that_fails_is_told_again_and_delays_no_other(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_FIRST_RETRY", 0.05)
    async with Inbox().serving() as broken:
        broken.statuses = [500, 429, 503]
        cluster.configure(slack(broken, "broken"), slack(inbox))
        async with cluster.running():
            put(cluster.caches, release())
            await until(lambda: len(cluster.notified()) == 2)
        assert len(broken.requests) == 4
    assert len(inbox.requests) == 1
    assert cluster.count("slack", "sent") == 2


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request to a receiver that hangs does not end."""
    monkeypatch.setattr(Outbound, "request", functools.partialmethod(Outbound.request, timeout=2 * HANG))


@pytest.mark.usefixtures("patience")
async def test_receiver_that_does_not_answer_delays_no_other(cluster: Cluster, inbox: Inbox) -> None:
    async with Inbox().serving() as hanging:
        hanging.hang = True
        cluster.configure(slack(hanging, "hanging"), slack(inbox))
        async with cluster.running():
            for name in ("a", "b", "c"):
                put(cluster.caches, release(name=name))
            await until(lambda: len(inbox.requests) == 3)
            assert len(hanging.requests) == 1


@pytest.mark.parametrize("status", [301, 400, 404])
async def test_refused_notification_is_not_repeated_by_a_new_leader(
    cluster: Cluster, inbox: Inbox, status: int
) -> None:
    inbox.statuses, inbox.headers = [status], {"Location": f"{inbox.url}/elsewhere"}
    cluster.configure(slack(inbox))
    for _ in range(2):
        async with cluster.running():
            put(cluster.caches, release())
            await until(cluster.notified)
    assert [path for path, _, _ in inbox.requests] == ["/team"]
    assert cluster.count("slack", "failed") == 1


async def test_no_log_contains_the_path_of_a_url_or_a_token(
    cluster: Cluster, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.statuses = [500, 404]
    caplog.set_level("DEBUG")
    cluster.configure(slack(inbox, "team", url=f"{inbox.url}/secret-path", token="secret-token"))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: cluster.count("slack", "failed"))
    assert inbox.requests[0][1]["Authorization"] == "Bearer secret-token"
    inbox.statuses = [500, 400]
    cluster.configure({**pagerduty(inbox), "routingKey": "secret".ljust(32, "0")})
    async with cluster.running():
        await until(lambda: cluster.count("pagerduty", "failed"))
    assert inbox.requests[-1][2]["routing_key"].startswith("secret")
    assert "a notification was not sent" in caplog.text
    assert "secret" not in "".join(str(record.__dict__) for record in caplog.records if record.name != "aiohttp.access")


async def test_receiver_that_changes_gets_what_waits_and_the_old_one_gets_nothing_more(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_PERIOD", 0.02)
    monkeypatch.setattr(lane, "_LAST_RETRY", 0.05)
    async with Inbox().serving() as other:
        inbox.statuses = [500] * 1000
        cluster.configure(slack(inbox))
        async with cluster.running():
            put(cluster.caches, release())
            await until(lambda: len(inbox.requests) > 1)
            url = other.url.replace("127.0.0.1", "localhost")
            cluster.configure(slack(other, url=url), cluster="prod")
            await until(cluster.notified)
            attempts = len(inbox.requests)
            await asyncio.sleep(0.3)
        assert len(inbox.requests) == attempts
        assert len(other.requests) == 1
        assert other.texts[0].startswith("AlterShield of prod: ")


async def test_change_of_the_file_sends_nothing_twice(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_PERIOD", 0.02)
    monkeypatch.setattr(lane, "_LAST_RETRY", 0.05)
    inbox.statuses = [500] * 1000
    cluster.configure(slack(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: inbox.requests)
        cluster.configure(slack(inbox), cluster="prod")
        await until(lambda: "of prod" in inbox.texts[-1])
        inbox.statuses = []
        await until(cluster.notified)
        await asyncio.sleep(0.3)
    assert cluster.count("slack", "sent") == 1


async def test_suspension_that_is_over_before_it_is_told_is_not_told(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_FIRST_RETRY", 0.2)
    inbox.statuses = [500]
    cluster.configure(slack(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: inbox.requests)
        (known,) = cluster.caches.releases.all()
        suspended_again = msgspec.structs.replace(known.status, entry_time_unix=NOW + 1)
        put(cluster.caches, newer(known, 5, status=suspended_again))
        await until(cluster.notified)
    assert cluster.notified() == (f"suspended/{NOW + 1}/team",)
    assert len(inbox.requests) == 2


async def test_alert_ends_when_the_suspension_does(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(alertmanager(inbox), slack(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: len(cluster.notified()) == 2)
        cluster.time += 600
        (known,) = cluster.caches.releases.all()
        passed = msgspec.structs.replace(known.status, status=WorkloadState.SUCCESS, entry_time_unix=NOW + 600)
        put(cluster.caches, newer(known, 50, status=passed))
        await until(lambda: len(cluster.notified()) == 1)
    async with cluster.running():
        await asyncio.sleep(0.1)
    alerts = [body[0] for path, _, body in inbox.requests if path == "/api/v2/alerts"]
    assert [each["endsAt"] for each in alerts] == [rfc3339(NOW + 24 * 3600), rfc3339(NOW + 600)]
    assert alerts[0]["labels"] == alerts[1]["labels"]
    assert cluster.notified() == (f"suspended/{NOW}/team",)
    assert len(inbox.requests) == 3


async def test_alert_ends_when_the_change_workload_is_deleted(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(alertmanager(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(cluster.notified)
        remove(cluster.caches, cluster.caches.releases.all()[0])
        await until(lambda: len(inbox.requests) == 2)
    assert inbox.requests[1][2][0]["endsAt"] == rfc3339(NOW)


async def test_batch_that_waits_for_a_person_is_told_once(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox))
    held = Condition(ConditionType.VERIFIED, "Unknown", "Held", "the check errors has no result", rfc3339(NOW))

    def batch_of(number: int) -> batch.Batch:
        made = builders.change_pod(number, "a", status=ChangePodStatus("PostSubmitted", conditions=(held,)))
        metadata = msgspec.structs.replace(made.metadata, resource_version="1")
        found = batch.project(msgspec.structs.replace(made, metadata=metadata))
        assert found.release[1] == release().metadata.name
        return found

    put(cluster.caches, release(ChangeWorkloadStatus(WorkloadState.RUNNING, entry_time_unix=NOW)))
    async with cluster.running():
        for number in range(1, 5):
            put(cluster.caches, batch_of(number))
        await until(cluster.notified)
        await asyncio.sleep(0.1)
    assert cluster.notified() == (f"approval-needed/{NOW}/team",)
    assert len(inbox.requests) == 1
    assert "waits for your verdict. the check errors has no result" in inbox.texts[0]


async def test_old_suspensions_are_not_told_to_a_new_receiver(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox))
    cluster.time = NOW + 7200
    put(cluster.caches, release())
    async with cluster.running():
        await asyncio.sleep(0.1)
    assert inbox.requests == []


async def test_metadata_address_is_never_called(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.configure({"name": "x", "type": "slack", "url": "http://169.254.169.254/latest"})
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: "it is repeated" in caplog.text)
    assert "a metadata service" in "".join(str(record.__dict__) for record in caplog.records)


async def test_success_is_told_once_to_the_receivers_that_name_it(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox), slack(inbox, "happy", events=["succeeded"]))
    success = ChangeWorkloadStatus(WorkloadState.SUCCESS, entry_time_unix=NOW)
    async with cluster.running():
        put(cluster.caches, release(success))
        await until(cluster.notified)
        (known,) = cluster.caches.releases.all()
        again = msgspec.structs.replace(known.status, entry_time_unix=NOW + 60, reached=2, replicas=2)
        put(cluster.caches, newer(known, 50, status=again))
        await asyncio.sleep(0.1)
    async with cluster.running():
        await asyncio.sleep(0.1)
    assert [path for path, _, _ in inbox.requests] == ["/happy"]
    assert "the release of Deployment default/sleep succeeded." in inbox.texts[0]


def pagerduty(inbox: Inbox) -> dict[str, Any]:
    return {"name": "pager", "type": "pagerduty", "url": inbox.url, "routingKey": "r" * 32}


def pages(inbox: Inbox) -> list[tuple[str, str]]:
    """The action and the key of each event, which are as PagerDuty demands them."""
    for path, _, body in inbox.requests:
        assert path == "/v2/enqueue"
        schemas.pagerduty(body)
    return [(body["event_action"], body["dedup_key"]) for _, _, body in inbox.requests]


async def test_pagerduty_alert_is_resolved_once_when_the_suspension_ends(cluster: Cluster, inbox: Inbox) -> None:
    inbox.statuses = [202, 202]
    cluster.configure(pagerduty(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(cluster.notified)
    async with cluster.running():
        (known,) = cluster.caches.releases.all()
        passed = msgspec.structs.replace(known.status, status=WorkloadState.SUCCESS, entry_time_unix=NOW + 600)
        put(cluster.caches, newer(known, 50, status=passed))
        await until(lambda: not cluster.notified())
        await asyncio.sleep(0.1)
    key = f"{release().metadata.uid}/suspended/{NOW}"
    assert pages(inbox) == [("trigger", key), ("resolve", key)]


ROLLED_BACK = ChangeWorkloadStatus(
    WorkloadState.FAILED,
    entry_time_unix=NOW,
    conditions=(Condition(ConditionType.ROLLED_BACK, "True", "PodsNotUp", "m", rfc3339(NOW)),),
    actions=(Action("Override", "ann", "why", rfc3339(NOW), "Done", "ReleaseOverride shop/one"),),
)


async def test_pagerduty_alerts_about_what_is_past_end_with_the_change_workload(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(pagerduty(inbox))
    async with cluster.running():
        put(cluster.caches, release(ROLLED_BACK))
        await until(lambda: len(cluster.notified()) == 2)
        remove(cluster.caches, cluster.caches.releases.all()[0])
        await until(lambda: len(inbox.requests) == 4)
        await asyncio.sleep(0.1)
    begun = {key for action, key in pages(inbox) if action == "trigger"}
    assert len(begun) == 2
    assert {key for action, key in pages(inbox) if action == "resolve"} == begun


async def test_alert_that_is_being_sent_when_its_release_is_deleted_is_resolved(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, sent = asyncio.Event(), Outbound.request

    async def late(own: Outbound, *arguments: Any, **more: Any) -> Any:
        reply = await sent(own, *arguments, **more)
        await answer.wait()
        return reply

    monkeypatch.setattr(Outbound, "request", late)
    cluster.configure(pagerduty(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: inbox.requests)
        remove(cluster.caches, cluster.caches.releases.all()[0])
        await asyncio.sleep(0.1)
        answer.set()
        await until(lambda: len(inbox.requests) == 2)
    assert [action for action, _ in pages(inbox)] == ["trigger", "resolve"]


async def test_state_that_ends_before_it_is_told_is_not_told(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_FIRST_RETRY", 0.2)
    inbox.statuses = [500, 500]
    cluster.configure(slack(inbox), pagerduty(inbox))
    async with cluster.running():
        put(cluster.caches, release())
        await until(lambda: len(inbox.requests) == 2)
        (known,) = cluster.caches.releases.all()
        running = msgspec.structs.replace(known.status, status=WorkloadState.RUNNING)
        put(cluster.caches, newer(known, 50, status=running))
        await asyncio.sleep(0.5)
    assert len(inbox.requests) == 2


async def test_teams_accepts_its_card(cluster: Cluster, inbox: Inbox) -> None:
    inbox.statuses = [202]
    cluster.configure({"name": "t", "type": "teams", "url": f"{inbox.url}/workflows/x?sp=%2Ftriggers&sig=secret"})
    async with cluster.running():
        put(cluster.caches, release())
        await until(cluster.notified)
    schemas.teams(inbox.requests[0][2])


# by policy


async def told(cluster: Cluster, count: int, *, notify: tuple[str, ...] | None) -> set[str]:
    """The names of the receivers of a suspended release under a policy."""
    async with cluster.running():
        put(cluster.caches, release(notify=notify))
        await until(lambda: len(cluster.notified()) == count)
        await asyncio.sleep(0.1)
    return {entry.rpartition("/")[2] for entry in cluster.notified()}


@pytest.mark.parametrize(
    ("notify", "names"),
    [
        (None, {"team", "audit"}),
        (("shop",), {"shop", "audit"}),
        (("shop", "gone"), {"shop", "audit"}),
        (("shop", "team"), {"shop", "team", "audit"}),
        ((), {"audit"}),
        (("gone",), {"team", "audit"}),
        (("other",), {"team", "audit"}),  # it may not be told of this namespace
    ],
)
async def test_policy_names_the_receivers_of_its_releases(
    cluster: Cluster, inbox: Inbox, notify: tuple[str, ...] | None, names: set[str]
) -> None:
    cluster.configure(
        slack(inbox),
        slack(inbox, "shop", selection="named"),
        slack(inbox, "other", selection="named", namespaces=["other"]),
        slack(inbox, "audit", selection="always"),
    )
    assert await told(cluster, len(names), notify=notify) == names
    assert {path[1:] for path, _, _ in inbox.requests} == names
    assert len(inbox.requests) == len(names)


async def test_named_receiver_gets_only_the_events_in_the_file(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(slack(inbox, "shop", events=["ungated"]), slack(inbox))
    async with cluster.running():
        put(cluster.caches, release(notify=("shop",)), release(name="other"))
        await until(lambda: cluster.notified("other"))
        await asyncio.sleep(0.1)
    assert cluster.notified() == ()
    assert cluster.notified("other") == (f"suspended/{NOW}/team",)


async def test_receiver_that_is_removed_while_releases_name_it_is_replaced_by_the_default_ones(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "_PERIOD", 0.02)
    inbox.statuses = [500] * 1000
    cluster.configure(slack(inbox), slack(inbox, "shop"))
    async with cluster.running():
        put(cluster.caches, release(notify=("shop",)))
        await until(lambda: inbox.requests)
        inbox.statuses = []
        cluster.configure(slack(inbox))
        await until(cluster.notified)
    assert cluster.notified() == (f"suspended/{NOW}/team",)
    assert {path for path, _, _ in inbox.requests[:-1]} == {"/shop"}
    assert inbox.requests[-1][0] == "/team"


async def test_alert_of_a_receiver_that_the_policy_names_ends(cluster: Cluster, inbox: Inbox) -> None:
    cluster.configure(alertmanager(inbox) | {"selection": "named"}, slack(inbox))
    async with cluster.running():
        put(cluster.caches, release(notify=("alerts",)))
        await until(cluster.notified)
        remove(cluster.caches, cluster.caches.releases.all()[0])
        await until(lambda: len(inbox.requests) == 2)
    assert inbox.requests[1][2][0]["endsAt"] == rfc3339(NOW)


# attacks


@pytest.mark.usefixtures("patience")
async def test_storm_of_failures_reaches_a_working_receiver_while_another_one_hangs(
    cluster: Cluster, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_INTERVAL", 0.001)
    monkeypatch.setattr(lane, "MAX_QUEUE", 500)
    async with Inbox().serving() as hanging:
        hanging.hang = True
        cluster.configure(slack(hanging, "hanging"), slack(inbox))
        async with cluster.running():
            for number in range(1000):
                put(cluster.caches, release(name=f"w-{number}"))
                if not number % 100:
                    await asyncio.sleep(0)
            await until(lambda: cluster.count("slack", "sent") >= 500)
        assert len(hanging.requests) == 1
    assert cluster.count("slack", "dropped") >= 500


async def test_status_of_a_release_with_many_events_keeps_those_that_are_true(cluster: Cluster, inbox: Inbox) -> None:
    true = f"suspended/{NOW}/team"
    others = tuple(f"approval-needed/{number}/team" for number in range(MAX_NOTIFIED - 1))
    cluster.configure(slack(inbox), slack(inbox, "second"))
    async with cluster.running():
        put(cluster.caches, release(msgspec.structs.replace(SUSPENDED, notified=(true, *others))))
        await until(lambda: f"suspended/{NOW}/second" in cluster.notified())
        await asyncio.sleep(0.1)
    assert true in cluster.notified()
    assert len(cluster.notified()) == MAX_NOTIFIED
    assert len(inbox.requests) == 1
