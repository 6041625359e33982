"""AlterShield's processes and a Prometheus that scrapes them, on a sandbox, during releases and an outage.

The processes are those of two pods, without the second gatekeeper and the second certgen, because the webhook
configurations contain only one address.
"""

import asyncio
import base64
import contextlib
import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from altershield.admission.webhooks import VALIDATING
from altershield.api.change_workload import WorkloadState
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import (
    CHANGE_PODS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
)
from command.account import Account
from command.demo.sample import MISSING_IMAGE, NAMESPACE, manifest
from command.demo.steps import STEPS
from command.demo.story import Story
from command.install import webhooks
from command.installation import install
from kube_base.access.client import Client, PatchType
from kube_base.processes import free_ports
from kube_base.resources import DEPLOYMENTS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from tests.monitoring.live_steps import blow_a_fuse, gated, in_steps, new, passes
from tests.monitoring.prometheus import Prometheus
from tests.support.polling import eventually, until
from tests.support.processes import command, running, wait_for_line

START_TIMEOUT = 8
CONFIGURATION = "altershield"
CLUSTER = "sandbox"
"""The label of all series, as in a Prometheus for several clusters."""


class Watched:
    """AlterShield's processes. `ports` are the ports of `/metrics`, by container and pod. `since` is the time when the
    releases began, in Unix seconds."""

    since: float

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "admin.kubeconfig"
        self._directory = directory
        names = [("gatekeeper", 0), ("reconciler", 0), ("reconciler", 1), ("certgen", 0)]
        webhook, *health = free_ports(1 + len(names))
        self.webhook = webhook
        self.ports = dict(zip(names, health, strict=True))

    @contextlib.contextmanager
    def running(self, container: str, pod: int = 0) -> Iterator[None]:
        with _process(
            [sys.executable, "-m", *self._command(container, pod)], self._directory / f"{container}-{pod}.log"
        ):
            yield

    def _command(self, container: str, pod: int) -> list[str]:
        health = f"--metrics-port={self.ports[container, pod]}"
        account = f"--kubeconfig={self._directory / 'kubeconfig'}"
        files = [f"--tls-cert-file={self._directory}/tls.crt", f"--tls-private-key-file={self._directory}/tls.key"]
        match container:
            case "gatekeeper":
                port = f"--port={self.webhook}"
                return [container, account, health, port, "--host=127.0.0.1", "--shutdown-delay=0", *files]
            case "reconciler":
                times = [
                    f"--start-timeout={START_TIMEOUT}",
                    "--observe-seconds=1",
                    "--batch-wait=2",
                    "--lease-duration=4",
                ]
                return [container, account, health, *times]
            case _:  # as administrator: the account of `altershield dev` lacks certgen's permissions
                admin = f"--kubeconfig={self.kubeconfig}"
                return [container, "run", admin, health, f"--directory={self._directory}", "--san=127.0.0.1"]

    def scrapes(self) -> list[dict[str, Any]]:
        """Scrape targets, with the labels that the Prometheus operator sets, and the cluster."""
        return [
            {
                "targets": [f"127.0.0.1:{port}"],
                "labels": {
                    "cluster": CLUSTER,
                    "namespace": SYSTEM_NAMESPACE,
                    "pod": f"altershield-{pod}",
                    "container": container,
                },
            }
            for (container, pod), port in self.ports.items()
        ]


def _process(arguments: Sequence[str], log: Path) -> contextlib.AbstractContextManager[object]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    return running(arguments, log, environment)


@contextlib.contextmanager
def watched(directory: Path, prometheus: str, rules: Path) -> Iterator[tuple[Watched, Prometheus]]:
    """Run everything until the block ends. Releases and outage are over when the block begins. `prometheus` is the path
    of the program."""
    processes = Watched(directory)
    with contextlib.ExitStack() as stack:
        log = directory / "sandbox.log"
        sandbox = stack.enter_context(command("sandbox", "--output", str(processes.kubeconfig), log=log))
        wait_for_line(sandbox, log, "Serving ")
        asyncio.run(_prepare(processes, directory))
        for container, pod in (("certgen", 0), ("reconciler", 0), ("reconciler", 1)):
            stack.enter_context(processes.running(container, pod))
        serving = stack.enter_context(contextlib.ExitStack())
        serving.enter_context(processes.running("gatekeeper"))
        (port,) = free_ports(1)
        arguments = _configure(directory, port, rules, processes, _api_server(processes.kubeconfig, directory))
        stack.enter_context(_process([prometheus, *arguments], directory / "prometheus.log"))
        seen = Prometheus(f"http://127.0.0.1:{port}")
        reached = f"count(up == 1) == {len(processes.ports) + 1}"
        eventually(lambda: seen.value(reached), "Prometheus to reach all targets")
        eventually(lambda: seen.value("sum(altershield_leader)") == 1, "a reconciler to lead")
        eventually(lambda: seen.value("min(altershield_certificate_lifetime_seconds) > 0"), "a certificate")
        processes.since = time.time()
        asyncio.run(_story(processes))
        asyncio.run(_steps(processes, seen))
        asyncio.run(_denials(processes, seen))
        asyncio.run(_protect(processes, seen))
        serving.close()
        asyncio.run(_outage(processes, seen))
        serving.enter_context(processes.running("gatekeeper"))
        eventually(lambda: seen.value(reached), "the gatekeeper to be back")
        eventually(
            lambda: seen.value("sum(altershield_ungated_releases_total) > 0"), "the ungated release to be noticed"
        )
        yield processes, seen


async def _prepare(processes: Watched, directory: Path) -> None:
    """Install CRDs, roles and webhook configurations."""
    async with await Client.connect(str(processes.kubeconfig)) as admin:
        await install(admin)
        await Account.create(admin, directory)
        url = f"https://127.0.0.1:{processes.webhook}"
        configurations = webhooks.configurations(CONFIGURATION, url, b"", system_namespace=SYSTEM_NAMESPACE)
        for kind, configuration in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), configurations, strict=True):
            await admin.create(kind, configuration)


def _api_server(kubeconfig: Path, directory: Path) -> dict[str, Any]:
    """The scrape configuration for the API server, with the administrator's credentials."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]

    def file(name: str, encoded: str) -> str:
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(encoded))
        return str(path)

    tls = {"ca_file": file("ca.crt", cluster["certificate-authority-data"])}
    scrape: dict[str, Any] = {
        "scheme": "https",
        "tls_config": tls,
        "static_configs": [{"targets": [cluster["server"].removeprefix("https://")], "labels": {"cluster": CLUSTER}}],
    }
    if "token" in user:
        scrape["authorization"] = {"credentials": user["token"]}
    else:
        tls["cert_file"] = file("admin.crt", user["client-certificate-data"])
        tls["key_file"] = file("admin.key", user["client-key-data"])
    return scrape


def _configure(directory: Path, port: int, rules: Path, processes: Watched, api_server: dict[str, Any]) -> list[str]:
    """Write Prometheus' configuration. Returns its arguments."""
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            # as in the chart's ServiceMonitor
            {"job_name": "altershield", "honor_labels": True, "static_configs": processes.scrapes()},
            {"job_name": "apiserver", **api_server},
        ],
    }
    file = directory / "prometheus.yaml"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(configuration))
    return [
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]


async def rename(processes: Watched, old: str, new: str) -> None:
    """Delete AlterShield's ValidatingWebhookConfiguration, and create the same under another name."""
    async with await Client.connect(str(processes.kubeconfig)) as admin:
        found: dict[str, Any] = await admin.get(VALIDATING_WEBHOOKS, old)
        await admin.delete(VALIDATING_WEBHOOKS, old)
        await admin.create(VALIDATING_WEBHOOKS, {**found, "metadata": {"name": new}})


async def _story(processes: Watched) -> None:
    """Releases with every result. At the end one is suspended by a person, one by health, one is stalled, and one was
    rolled back."""
    async with await Client.connect(str(processes.kubeconfig)) as client:
        story = Story(client, START_TIMEOUT)
        async with story.watching():
            for step in STEPS[:-4]:  # without the fix, what follows it, and the cleanup
                await step.run(story)
            await blow_a_fuse(client, "broken")
            broken = {**manifest(image=MISSING_IMAGE), "metadata": {"name": "broken", "labels": {"app": "broken"}}}
            await client.create(DEPLOYMENTS, broken, NAMESPACE)
            stalled = {**manifest(), "metadata": {"name": "stalled"}}
            stalled["spec"]["paused"] = True
            await client.create(DEPLOYMENTS, stalled, NAMESPACE)
            await _suspend(story)


async def _steps(processes: Watched, seen: Prometheus) -> None:
    async with await Client.connect(str(processes.kubeconfig)) as client:
        await in_steps(client, seen)
        await gated(client, seen)


async def _suspend(story: Story) -> None:
    """Fail a pod of the present version."""
    version = story.workload.version

    def verified() -> list[tuple[str, str]]:
        up = {pod.metadata.name for pod in story.up(version)}
        pods = ((each.metadata.name, info.pod) for each in story.change_pods.all() for info in each.spec.pod_infos)
        return [(change_pod, pod) for change_pod, pod in pods if pod in up]

    await story.until(lambda: "verified" * bool(verified()), "pods to be verified")
    change_pod, pod = verified()[0]
    patch = {"status": {"podResults": [{"pod": pod, "verdict": Verdict.UNPASS, "message": "find error"}]}}
    await story.client.patch(CHANGE_PODS, patch, change_pod, NAMESPACE, subresource="status")
    await story.until(lambda: "suspended" * (story.state(version) == WorkloadState.SUSPEND), "the suspension")


async def _denials(processes: Watched, seen: Prometheus) -> None:
    """Releases after the suspension, which are denied. Prometheus sees each one: a rate needs two values of a series,
    and the first denial is the first value."""
    async with await Client.connect(str(processes.kubeconfig)) as client:
        counts = (
            "sum(altershield_admission_denials_total)",
            "sum(apiserver_admission_webhook_rejection_count{error_type='no_error', type='validating'})",
        )
        before = [seen.value(f"{count} or vector(0)") or 0 for count in counts]
        for denied in range(1, 4):
            release = {"spec": {"template": {"metadata": {"annotations": {"attempt": str(denied)}}}}}
            assert not await passes(client.patch(DEPLOYMENTS, release, "sleep", NAMESPACE)), "it was admitted"
            wanted = " and ".join(f"({count}) >= {old + denied}" for count, old in zip(counts, before, strict=True))
            await asyncio.to_thread(eventually, functools.partial(seen.value, wanted), "the denial to be counted")


async def _protect(processes: Watched, seen: Prometheus) -> None:
    """A PodDeletionFlowControl, a budget that refuses the eviction of a pod, and one that is overdrawn because its pods
    do not come up."""
    async with await Client.connect(str(processes.kubeconfig)) as client:
        guard = {"limitRules": [{"interval": "10m", "limit": 100}]}
        await client.create(POD_DELETION_FLOW_CONTROLS, new(POD_DELETION_FLOW_CONTROLS, "guard", guard))
        for name, amount in (("sleep", {"maxUnavailable": 0}), ("broken", {"minAvailable": 1})):
            spec = {
                "targetRef": {"apiVersion": DEPLOYMENTS.api_version, "kind": DEPLOYMENTS.kind, "name": name},
                **amount,
            }
            await client.create(POD_UNAVAILABLE_BUDGETS, new(POD_UNAVAILABLE_BUDGETS, name, spec), NAMESPACE)
        pod = next(each for each in await _pods(client, ready=True) if each.startswith("sleep-"))

        async def refuses() -> bool:
            return not await passes(_evict(client, pod, dry_run=True))

        await until(refuses, "the gatekeeper to know the budget")
        counts = (
            'sum(altershield_admission_requests_total{webhook="vpod-eviction.kb.io", decision="denied"})',
            'sum(apiserver_admission_webhook_rejection_count{name="vpod-eviction.kb.io", error_type="no_error"})',
        )
        before = [seen.value(f"{count} or vector(0)") or 0 for count in counts]
        for refused in range(1, 4):
            assert not await passes(_evict(client, pod)), "the eviction was admitted"
            wanted = " and ".join(f"({count}) >= {old + refused}" for count, old in zip(counts, before, strict=True))
            await asyncio.to_thread(eventually, functools.partial(seen.value, wanted), "the refusal to be counted")


async def _pods(client: Client, *, ready: bool) -> list[str]:
    """The names of the pods that are ready, or of those that are not."""
    found = await client.list(PODS, NAMESPACE)
    return [
        pod["metadata"]["name"]
        for pod in found.items
        if ready == any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"]["conditions"])
    ]


async def _evict(client: Client, pod: str, *, dry_run: bool = False) -> None:
    options = {"dryRun": ["All"]} if dry_run else {}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, "deleteOptions": options}
    await client.create(PODS, eviction, NAMESPACE, name=pod, subresource="eviction")


async def _outage(processes: Watched, seen: Prometheus) -> None:
    """While no gatekeeper is up, releases are refused. Then failurePolicy is Ignore for one release, which passes. For
    pods it is always Ignore."""
    async with await Client.connect(str(processes.kubeconfig)) as client:
        passed = 'sum(apiserver_admission_webhook_fail_open_count{name="vpod.kb.io"})'
        for number, pod in enumerate(
            (await _pods(client, ready=False))[:3]
        ):  # the first value of a series is no increase
            await client.delete(PODS, pod, NAMESPACE)
            wanted = functools.partial(seen.value, f"{passed} > {number}")
            await asyncio.to_thread(eventually, wanted, "the deletion to be counted")
        release = {**manifest(), "metadata": {"name": "ungated"}}
        # only CREATE: the reconciler's updates are refused too
        ours = "error_type='calling_webhook_error', operation='CREATE'"
        count = f"sum(apiserver_admission_webhook_rejection_count{{{ours}}}) or vector(0)"
        before = seen.value(count) or 0
        for refused in range(1, 8):  # with a scrape after each, this takes longer than the alerts' 5 minutes as seconds
            assert not await passes(client.create(DEPLOYMENTS, release, NAMESPACE)), (
                "a release passed without a decision"
            )
            wanted = f"({count}) >= {before + refused}"
            await asyncio.to_thread(eventually, functools.partial(seen.value, wanted), "the refusal to be counted")
        await _validate(client, "Ignore")

        async def is_admitted() -> bool:
            await asyncio.sleep(0.2)  # each refusal is counted
            return await passes(client.create(DEPLOYMENTS, release, NAMESPACE))

        await until(is_admitted, "the new failurePolicy to take effect")
        await _validate(client, "Fail")


async def _validate(client: Client, failure_policy: str) -> None:
    path = f"/webhooks/{[webhook.resource for webhook in VALIDATING].index(DEPLOYMENTS)}/failurePolicy"
    patch = [{"op": "replace", "path": path, "value": failure_policy}]
    await client.patch(VALIDATING_WEBHOOKS, patch, CONFIGURATION, type_=PatchType.JSON)
