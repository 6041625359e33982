"""Checks by PromQL with the real Prometheus: with the data of a release in the past, with targets that come and go, and
with its own authentication. The examples of docs/checks.md are among the checks."""

import asyncio
import base64
import datetime
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from altershield.api.check_specs import CheckSpec, PrometheusCheck, SecretRef
from altershield.api.policy import DefensePolicy
from kube_base import pki
from reconciler.checks.check import Check, Fail, Pass, Pending, PollAnswer, Started, Unknown
from reconciler.checks.prometheus_check import PrometheusCheckRunner
from reconciler.checks.samples import problem
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.secrets import Secrets
from reconciler.outbound.urls import allowed_hosts
from tests.docs.pages import ROOT, blocks
from tests.monitoring.backfilled import NEW, backfilled, serving
from tests.monitoring.conftest import Promtool, program
from tests.monitoring.exporter import Exporter, scraped
from tests.monitoring.prometheus import Prometheus
from tests.support.polling import until
from tests.unit.reconciler.checks.subjects import check, subject

pytestmark = [pytest.mark.xdist_group("monitoring")]

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def past(promtool: Promtool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with backfilled(tmp_path_factory.mktemp("prometheus"), program("prometheus"), promtool) as found:
        yield found


class Cluster:
    """Answers requests for Secrets."""

    def __init__(self, **values: bytes) -> None:
        self._data = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in values.items()}

    async def get(self, *_: object, as_: type) -> Any:
        labels = {"altershield.defense.antgroup.com/credentials": "true"}
        return msgspec.convert({"metadata": {"labels": labels}, "data": self._data}, as_)


async def polled(
    definition: CheckSpec,
    url: str,
    started: float,
    after: float,
    *,
    last: bool = False,
    cluster: Cluster | None = None,
    **fields: Any,
) -> PollAnswer:
    """The result of a new reconciler so many seconds after the start of the check."""
    assert definition.prometheus is not None
    own = msgspec.structs.replace(definition, prometheus=msgspec.structs.replace(definition.prometheus, url=url))
    batch = subject(own, pods=NEW, started=started, **fields)
    async with Outbound(allowed_hosts(["127.0.0.1"])) as outbound:
        secrets = Secrets(cluster or Cluster())  # type: ignore[arg-type]
        checks: Check = PrometheusCheckRunner(outbound, secrets, lambda: started + after)
        assert await checks.start(batch) == Started("queries")
        return await checks.poll(batch, "queries", last=last)


def example(name: str) -> CheckSpec:
    """A check of docs/checks.md."""
    for block in blocks((ROOT / "docs" / "checks.md").read_text()):
        for part in yaml.safe_load_all(block.text) if block.language == "yaml" else ():
            if part.get("kind") == "DefensePolicy" and part["metadata"]["name"] == name:
                (found,) = msgspec.convert(part, DefensePolicy).spec.checks
                return found
    raise AssertionError(f"docs/checks.md has no DefensePolicy {name}")


@pytest.mark.parametrize("name", ["errors", "latency", "consumers"])
def test_example_of_the_page_is_accepted(name: str) -> None:
    assert problem(example(name)) == ""


async def test_rate_of_errors_passes_while_few_requests_fail_and_fails_later(past: tuple[str, int]) -> None:
    url, started = past
    definition = example("errors")
    assert await polled(definition, url, started, 214) == Pending("4 of 5 samples are known")
    assert await polled(definition, url, started, 215) == Pass("5 of 5 samples passed")
    answer = await polled(definition, url, started + 250, 300, last=True)
    assert answer == Fail("0.0909091 is above max 0.05 (2 samples failed, 1 may fail)")


async def test_restart_between_any_two_polls_has_no_effect(past: tuple[str, int]) -> None:
    url, started = past
    definition = example("errors")
    answers = [await polled(definition, url, started + 150, after) for after in range(90, 300, 15)]
    first = next(index for index, answer in enumerate(answers) if not isinstance(answer, Pending))
    assert isinstance(answers[first], Fail | Pass)
    assert set(answers[first:]) == {answers[first]}


async def test_latency_of_the_new_version_is_compared_with_the_old_one(past: tuple[str, int]) -> None:
    url, started = past
    assert await polled(example("latency"), url, started, 200) == Fail(
        "0.5 is too far above the old version's 0.099 (2 samples failed, 1 may fail)"
    )


async def test_custom_metric_needs_each_pod_of_the_batch(past: tuple[str, int]) -> None:
    url, started = past
    definition = example("consumers")
    found = await polled(definition, url, started, 65, cluster=Cluster(token=b"t"))
    assert found == Pass("4 of 4 samples passed")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("none", "no data"),
        ('sum(broken{pod=~"{{pods}}"})', "the value is NaN"),
        ('sum(rate(idle_total{pod=~"{{pods}}"}[1m])) / sum(rate(idle_total{pod=~"{{pods}}"}[1m]))', "NaN"),
        ("1 / vector(0)", "the value is +Inf"),
        ('two{pod=~"{{pods}}"}', "several series"),
        ("sum(", "Prometheus answers HTTP 400: bad_data: "),
        ('sum(up{pod=~"*"})', "Prometheus answers HTTP 400: bad_data"),
        ("label_replace(two, 'pod', 'x', '', '')", "Prometheus answers HTTP 422: execution: "),
    ],
)
async def test_samples_without_one_number_are_unknown(query: str, reason: str, past: tuple[str, int]) -> None:
    url, started = past
    answer = await polled(check(query), url, started, 35, last=True)
    assert isinstance(answer, Unknown)
    assert "0 of 3 samples are known; the last one that is not: query: " in answer.reason
    assert reason in answer.reason


async def test_samples_are_taken_from_the_time_at_which_there_is_data(past: tuple[str, int]) -> None:
    url, started = past
    for query in ('avg(late{pod=~"{{pods}}"})', 'avg(broken{pod=~"{{pods}}"})'):
        assert await polled(check(query), url, started, 64) == Pending(
            "0 of 3 samples are known; the last one that is not: query: "
            + ("no data" if "late" in query else "the value is NaN")
        )
        assert await polled(check(query), url, started, 85) == Pass("3 of 3 samples passed")


async def test_value_with_a_dot_matches_only_itself(past: tuple[str, int]) -> None:
    url, started = past
    answer = await polled(check('sum(up{pod=~"{{workload}}-.*"})', max="4"), url, started, 35)
    assert answer == Pass("3 of 3 samples passed")
    answer = await polled(check('sum(up{pod=~"{{workload}}-.*"})', max="4"), url, started, 35, name="s.eep")
    assert isinstance(answer, Pending)


def _has_warnings(url: str) -> bool:
    """Whether PromQL has warnings in this version of Prometheus: since 2.48. Debian 12 has 2.42."""
    version = Prometheus(url).get("status/buildinfo")["version"]
    return tuple(map(int, version.split(".")[:2])) >= (2, 48)


async def test_warning_of_prometheus_makes_samples_unknown(past: tuple[str, int]) -> None:
    url, started = past
    answer = await polled(check("quantile(2, up)"), url, started, 35)
    assert isinstance(answer, Pending)
    warned = "the answer may be partial: PromQL warning: quantile value should be between 0 and 1"
    assert (warned if _has_warnings(url) else "the value is +Inf") in answer.reason


async def test_info_about_the_name_of_a_counter_does_not_make_samples_unknown(past: tuple[str, int]) -> None:
    url, started = past
    answer = await polled(check('sum(rate(queue_consumers{pod=~"{{pods}}"}[1m]))'), url, started, 35)
    assert answer == Pass("3 of 3 samples passed")


async def test_stopped_prometheus_is_unknown(tmp_path: Path) -> None:
    answer = await polled(check(), "http://127.0.0.1:9", time.time() - 60, 60, last=True)
    assert isinstance(answer, Unknown)
    assert "the request cannot be sent to 127.0.0.1:9" in answer.reason


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.close()


async def test_target_that_goes_down_makes_samples_unknown_until_it_is_back(exporter: Exporter, tmp_path: Path) -> None:
    with scraped(exporter, tmp_path, program("prometheus")) as url:
        definition = check("failures", timeout=60, interval_seconds=1, lag_seconds=2, samples=8, max="1")
        started = float(int(time.time()) + 2)
        states = []
        async with Outbound(allowed_hosts(["127.0.0.1"])) as outbound:
            own = msgspec.structs.replace(
                definition, prometheus=msgspec.structs.replace(_prometheus(definition), url=url)
            )
            batch, answer = subject(own, started=started), Pending()
            while isinstance(answer, Pending) and time.time() < batch.deadline:
                checks = _runner(outbound)  # a new one for each poll, as after a restart
                answer = await checks.poll(batch, "queries", last=False)
                states.append(answer)
                exporter.up = not started + 4 < time.time() < started + 9
                await asyncio.sleep(0.3)
    reasons = [state.reason for state in states if isinstance(state, Pending)]
    assert answer == Pass("8 of 8 samples passed")
    assert any(reason.endswith("query: no data") for reason in reasons)


async def test_value_that_turns_bad_fails_within_the_lag(exporter: Exporter, tmp_path: Path) -> None:
    with scraped(exporter, tmp_path, program("prometheus")) as url:
        started = float(int(time.time()) + 2)
        definition = check("failures", timeout=60, interval_seconds=1, lag_seconds=2, samples=40, max="1")
        own = msgspec.structs.replace(definition, prometheus=msgspec.structs.replace(_prometheus(definition), url=url))
        batch = subject(own, started=started)
        async with Outbound(allowed_hosts(["127.0.0.1"])) as outbound:
            checks = _runner(outbound)
            answer: PollAnswer = Pending()
            while isinstance(answer, Pending) and time.time() < batch.deadline:
                answer = await checks.poll(batch, "queries", last=False)
                exporter.value = "7" if time.time() > started + 4 else "0"
                await asyncio.sleep(0.3)
        assert answer == Fail("7 is above max 1 (1 sample failed, 0 may fail)")
        assert time.time() < started + 40, "it ends before its 40 samples"


def _prometheus(definition: CheckSpec) -> PrometheusCheck:
    assert definition.prometheus is not None
    return definition.prometheus


def _runner(outbound: Outbound) -> PrometheusCheckRunner:
    return PrometheusCheckRunner(outbound, Secrets(Cluster()), time.time)  # type: ignore[arg-type]


# bcrypt of PASSWORD
HASH = "$2b$04$abcdefghijklmnopqrstuu2GbQLdjwBFdH8CcOE866nGziodmvO8K"
PASSWORD = b"open:sesame"


async def test_credentials_of_the_secret_open_a_prometheus_that_wants_a_certificate_and_a_password(
    tmp_path: Path,
) -> None:
    authority = pki.Authority.create("tests", lifetime=DAY)
    server = authority.issue("prometheus", hosts=["127.0.0.1"], lifetime=DAY)
    client = authority.issue("altershield", lifetime=DAY)
    files = {"ca.crt": authority.pair.certificate, "tls.crt": server.certificate, "tls.key": server.key}
    for name, content in files.items():
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_bytes(content)
    tls = {"cert_file": "tls.crt", "key_file": "tls.key", "client_ca_file": "ca.crt"}
    web = {
        "tls_server_config": {**tls, "client_auth_type": "RequireAndVerifyClientCert"},
        "basic_auth_users": {"altershield": HASH},
    }
    (tmp_path / "web.yaml").write_text(json.dumps(web))
    arguments = [f"--web.config.file={tmp_path / 'web.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    definition = check("vector(1)", secret_ref=SecretRef("prometheus"))
    certificate = {"ca_crt": authority.pair.certificate, "tls_crt": client.certificate, "tls_key": client.key}
    user = {"username": b"altershield"}
    with serving(tmp_path, program("prometheus"), {}, *arguments, answers=False) as address:
        url = address.replace("http:", "https:")

        async def result(**values: bytes) -> PollAnswer:
            return await polled(definition, url, time.time() - 60, 60, cluster=Cluster(**values))

        async def opened() -> bool:
            return isinstance(await result(**certificate, **user, password=PASSWORD), Pass)

        await until(opened, "Prometheus to answer", pause=0.2)
        for wrong, reason in (
            ({**certificate, **user, "password": b"wrong"}, "not one of Prometheus: HTTP 401"),
            ({"ca_crt": authority.pair.certificate, **user, "password": PASSWORD}, "the request "),
            ({"tls_crt": client.certificate, "tls_key": client.key}, "certificate verify failed"),
        ):
            answer = await result(**wrong)
            assert isinstance(answer, Pending)
            assert reason in answer.reason
            assert "sesame" not in answer.reason
