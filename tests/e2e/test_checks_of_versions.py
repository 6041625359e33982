"""Releases that are judged by comparison with the old version and by the logs of their pods, also while they soak."""

import json
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from kube_sandbox.apiserver.verbs.logs import LOG
from tests.e2e.conftest import govern
from tests.e2e.own_installation import Answer, installation, serving
from tests.e2e.sleep import SUSPEND, VERSION, succeed
from tests.support import workloads
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("server")


@dataclass
class Prometheus:
    """Answers range queries with the value that `value` has for a query."""

    value: Callable[[str], float] = lambda query: 1.0
    queries: list[str] = field(default_factory=list)
    url: str = ""


@dataclass(frozen=True)
class Installed:
    kubeconfig: Path
    prometheus: Prometheus


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    found = Prometheus()

    def answer(_: dict[str, str], body: bytes) -> Answer:
        form = dict(urllib.parse.parse_qsl(body.decode()))
        found.queries.append(form["query"])
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        times = [start + number * step for number in range(int((end - start) / step) + 1)]
        series = [{"metric": {}, "values": [[time, str(found.value(form["query"]))] for time in times]}]
        return 200, {}, {"status": "success", "data": {"resultType": "matrix", "result": series}}

    with serving(answer) as url:
        found.url = url
        yield found


@pytest.fixture(scope="module")
def installed(
    has_kubectl: None, request: pytest.FixtureRequest, prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """A cluster of its own, with an installation whose checks may call the server."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs pods that print what a test says: those of the sandbox")
    hosts = ["--checks-allowed-hosts", "127.0.0.1"]
    with installation(tmp_path_factory.mktemp("versions"), *hosts) as kubeconfig:
        yield Installed(kubeconfig, prometheus)


@pytest.fixture
def kubectl(installed: Installed) -> Iterator[Kubectl]:
    namespace = f"versions-{uuid.uuid4().hex[:8]}"
    govern(installed.kubeconfig, [namespace])
    installed.prometheus.queries.clear()
    kubectl = Kubectl(installed.kubeconfig, namespace)
    yield kubectl
    kubectl.delete_namespaces(namespace)


def policy(kubectl: Kubectl, *checks: Json, **spec: Any) -> None:
    body = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "rules"}}
    kubectl.apply(json.dumps({**body, "spec": {**spec, "checks": list(checks)}}))
    kubectl.wait("defensepolicy/rules", "condition=Accepted")


def comparison(url: str, **compare: Any) -> Json:
    metric = 'sum(errors{namespace="$namespace",pod=~"$pods"})'
    times = {"intervalSeconds": 1, "samples": 2, "lagSeconds": 0}
    return {
        "name": "errors",
        "timeoutSeconds": 10,
        "prometheus": {"url": url, "compare": {"metric": metric, "maxRatio": "1.2", **compare}, **times},
    }


def release(kubectl: Kubectl, log: str = "started", image: str = "busybox", replicas: int = 1) -> str:
    body = workloads.manifest("Deployment", "sleep", image, replicas=replicas)
    body["spec"]["template"]["metadata"]["annotations"] = {LOG: log}
    kubectl.apply(json.dumps(body))
    return kubectl.labels("deployment", "sleep")[VERSION]


def suspended(kubectl: Kubectl, version: str) -> None:
    name = f"sleep--x--{version}"
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Suspend")
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the label suspend")


def checks_of(kubectl: Kubectl, version: str) -> list[Json]:
    """The checks of the batches of a version."""
    batches = kubectl.json("changepods")["items"]
    own = (batch for batch in batches if batch["spec"]["changeWorkloadId"].endswith(version))
    return [each for batch in own for each in batch["status"].get("checks", [])]


def test_version_with_more_errors_than_the_old_one_is_suspended_and_the_first_one_passes(
    kubectl: Kubectl, prometheus: Prometheus
) -> None:
    policy(kubectl, comparison(prometheus.url))
    first = release(kubectl)
    succeed(kubectl, first)
    assert checks_of(kubectl, first)[0]["reason"] == "there is no version before this one to compare it with"
    assert prometheus.queries == []
    (old,) = (each["metadata"]["name"] for each in kubectl.json("replicasets")["items"])

    prometheus.value = lambda query: 1.0 if old in query else 1.3
    second = release(kubectl, image="busybox:2")
    suspended(kubectl, second)
    assert "1.3 is too far above the old version's 1" in checks_of(kubectl, second)[0]["reason"]
    (new,) = {query for query in prometheus.queries if old not in query}
    pod = kubectl.json("changepods")["items"]
    names = [info["pod"] for batch in pod for info in batch["spec"]["podInfos"]]
    assert any(f'pod=~"{name}"' in new for name in names)
    assert any(f'pod=~"{old}-[a-z0-9]{{5}}"' in query for query in prometheus.queries)


def test_version_with_too_few_samples_waits_for_a_person(kubectl: Kubectl, prometheus: Prometheus) -> None:
    policy(kubectl, comparison(prometheus.url, count='sum(requests{pod=~"$pods"})', minSamples=100))
    prometheus.value = lambda query: 7.0 if "requests" in query else 1.0
    succeed(kubectl, release(kubectl))
    version = release(kubectl, image="busybox:2")
    batch = f"sleep--x--{version}--x--1"
    eventually(lambda: kubectl.exists("changepod", batch), batch)
    kubectl.wait(f"changepod/{batch}", 'jsonpath={.status.conditions[?(@.type=="Verified")].reason}=Held')
    assert "count of the new pods: 7 is less than minSamples 100" in checks_of(kubectl, version)[0]["reason"]


def test_version_whose_pods_print_a_line_that_matches_is_suspended(kubectl: Kubectl) -> None:
    policy(kubectl, {"name": "panics", "onUnknown": "fail", "logs": {"pattern": "panic|FATAL"}})
    quiet = release(kubectl, "started\nready")
    succeed(kubectl, quiet)
    assert checks_of(kubectl, quiet)[0]["reason"] == "no line matches"
    loud = release(kubectl, "started\npanic: nil map")
    suspended(kubectl, loud)
    assert "container main: panic: nil map" in checks_of(kubectl, loud)[0]["reason"]


def test_check_that_fails_while_the_step_soaks_suspends_the_release(kubectl: Kubectl) -> None:
    check = {"name": "panics", "everySeconds": 10, "logs": {"pattern": "panic"}}
    policy(kubectl, check, rollout={"pods": [1], "soakSeconds": 600})
    succeed(kubectl, release(kubectl, replicas=2))
    version = release(kubectl, "started\n20s panic: late", replicas=2)
    suspended(kubectl, version)
    (found,) = checks_of(kubectl, version)
    assert found["state"] == "Failed"
    assert "panic: late" in found["reason"]
    assert found["previousTimeUnix"] < found["startTimeUnix"]
