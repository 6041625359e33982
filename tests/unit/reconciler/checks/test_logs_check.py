"""The check `logs`: which lines fail a batch, and what happens if logs cannot be read."""

import random
from typing import Any, cast

import msgspec
import pytest

from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, LogsCheck, Phase
from kube_base.access.errors import BadRequestError, ForbiddenError, NotFoundError, UnreachableError
from kube_base.resources import PODS
from kube_base.times import rfc3339
from reconciler.checks.check import Fail, Pass, Pending, PollAnswer, Started, Subject, Unknown
from reconciler.checks.line_patterns import problem
from reconciler.checks.logs_check import LogsCheckRunner
from tests.unit.altershield.releases.builders import NOW, change_pod, release

QUIET = b"started\nready\n"
PANIC = LogsCheck("panic|FATAL")


class Client:
    """Pods with the containers `main` and `side`, and their logs by pod, container and `+previous`. A log may be an
    error."""

    def __init__(self, **logs: bytes | Exception) -> None:
        self.logs: dict[str, bytes | Exception] = {name.replace("__", "/"): log for name, log in logs.items()}
        self.pods = {"a": "a-uid", "b": "b-uid"}
        self.restarts = 0
        self.queries: list[dict[str, str]] = []

    async def get(self, resource: object, name: str, namespace: str, *, as_: type[Any]) -> Any:
        assert (resource, namespace) == (PODS, "default")
        if name not in self.pods:
            raise NotFoundError("there is no such pod", code=404)
        statuses = [{"name": "main", "restartCount": self.restarts}]
        body = {
            "metadata": {"name": name, "namespace": namespace, "uid": self.pods[name]},
            "spec": {"containers": [{"name": "main"}, {"name": "side"}]},
            "status": {"containerStatuses": statuses},
        }
        return msgspec.convert(body, as_)

    async def request(self, method: str, path: str, *, query: dict[str, str], accept: str) -> bytes:
        assert (method, accept) == ("GET", "*/*")
        pod = path.removeprefix("/api/v1/namespaces/default/pods/").removesuffix("/log")
        self.queries.append({"pod": pod, **query})
        key = f"{pod}/{query['container']}{'/previous' if query.get('previous') else ''}"
        log = self.logs.get(key, QUIET)
        if isinstance(log, Exception):
            raise log
        return log[: int(query["limitBytes"])]


def subject(check: LogsCheck, *, kind: str = "Deployment", previous: int = 0) -> Subject:
    entry = CheckResult("logs", Phase.POST, CheckState.RUNNING, start_time_unix=NOW, previous_time_unix=previous)
    batch = change_pod(1, "a", "b")
    batch = msgspec.structs.replace(batch, status=msgspec.structs.replace(batch.status, checks=(entry,)))
    return Subject(batch, release(kind=kind), CheckSpec("logs", logs=check), Phase.POST, NOW, NOW + 120)


async def polled(client: Client, check: LogsCheck = PANIC, *, after: float = 0, **more: Any) -> PollAnswer:
    runner = LogsCheckRunner(cast(Any, client), lambda: NOW + after)
    of = subject(check, **more)
    assert await runner.start(of) == Started("logs")
    return await runner.poll(of, "logs", last=False)


async def test_batch_passes_when_no_line_matches_for_as_long_as_the_logs_are_watched() -> None:
    check = LogsCheck("panic", seconds=30)
    assert await polled(Client(), check, after=29) == Pending("the logs are watched for 1 s more")
    assert await polled(Client(), check, after=30) == Pass("no line matches")


async def test_line_that_matches_fails_the_batch_at_once_and_is_named() -> None:
    client = Client(b__side=b"started\ngoroutine 1: panic: nil map\n")
    found = await polled(client, LogsCheck("panic|FATAL", seconds=30))
    assert found == Fail("1 line matches, 0 may: b, container side: goroutine 1: panic: nil map")


async def test_lines_of_all_pods_count_up_to_the_maximum() -> None:
    client = Client(a__main=b"FATAL 1\n", b__main=b"FATAL 2\n")
    assert await polled(client, LogsCheck("FATAL", max=2)) == Pass("2 of 2 lines that may match")
    found = await polled(client, LogsCheck("FATAL", max=1))
    assert isinstance(found, Fail)
    assert found.reason.startswith("2 lines match, 1 may: ")


async def test_restarted_container_is_searched_with_its_run_before() -> None:
    client = Client(a__main__previous=b"panic\n")
    assert isinstance(await polled(client), Pass)
    client.restarts = 1
    assert isinstance(await polled(client), Fail)
    in_place = Client(a__main__previous=b"panic\n")
    in_place.restarts = 1
    assert isinstance(await polled(in_place, kind="CloneSet"), Pass), "the run before may be of the old version"
    assert {query.get("sinceTime") for query in in_place.queries} == {rfc3339(release().spec.create_time_unix)}


async def test_repeated_check_reads_what_was_printed_since_the_run_before() -> None:
    client = Client()
    await polled(client)
    assert {query.get("sinceTime", "") for query in client.queries} == {""}
    client.queries.clear()
    await polled(client, previous=NOW - 60)
    assert {query["sinceTime"] for query in client.queries} == {rfc3339(NOW - 60)}


async def test_log_that_is_too_long_is_unknown_unless_enough_lines_match() -> None:
    check = LogsCheck("panic", max_bytes=1024)
    found = await polled(Client(a__main=b"x" * 2000 + b"\npanic\n"), check)
    assert isinstance(found, Unknown)
    assert "the log of a, container main is longer than what may be read" in found.reason
    assert isinstance(await polled(Client(a__main=b"panic\n" + b"x" * 2000), check), Fail)


async def test_pods_that_are_gone_or_not_the_same_do_not_count() -> None:
    client = Client(a__main=b"panic\n")
    client.pods = {"a": "another-uid", "b": "b-uid"}
    assert isinstance(await polled(client), Pass)
    client.pods = {}
    assert await polled(client) == Unknown("no pod of the batch exists any more")


async def test_container_without_a_log_is_empty() -> None:
    client = Client(a__main=BadRequestError("is waiting to start", code=400), b__main=NotFoundError("gone", code=404))
    assert isinstance(await polled(client), Pass)


async def test_missing_permission_ends_the_check_and_names_the_value_of_the_chart() -> None:
    found = await polled(Client(a__main=ForbiddenError("pods/log is forbidden", code=403)))
    assert isinstance(found, Unknown)
    assert "set checks.logs.enabled of the chart" in found.reason


async def test_error_that_a_retry_may_mend_is_pending_unless_another_pod_fails() -> None:
    error = UnreachableError("no answer")
    assert await polled(Client(a__main=error)) == Pending("the logs cannot be read: no answer")
    assert isinstance(await polled(Client(a__main=error, b__main=b"panic\n")), Fail)


async def test_expression_whose_search_takes_too_long_is_unknown() -> None:
    log = "".join(random.Random(1).choices("ab", k=100_000)).encode()  # noqa: S311
    found = await polled(Client(a__main=log), LogsCheck("(a|b)*a(a|b){60}c"))
    assert isinstance(found, Unknown)
    assert "takes too long" in found.reason


@pytest.mark.parametrize("pattern", ["(a", "(a)\\1", "(?=a)"])
async def test_expression_that_is_not_supported_is_a_problem(pattern: str) -> None:
    assert problem(pattern)
    runner = LogsCheckRunner(cast(Any, Client()), lambda: NOW)
    assert await runner.start(subject(LogsCheck(pattern))) == Unknown(f"logs.pattern: {problem(pattern)}")


async def test_time_that_is_longer_than_the_check_may_take_is_unknown() -> None:
    runner = LogsCheckRunner(cast(Any, Client()), lambda: NOW)
    assert isinstance(await runner.start(subject(LogsCheck("a", seconds=121))), Unknown)
