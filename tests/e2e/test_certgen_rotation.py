"""No admission fails while certificates and CAs rotate under load, processes are killed and the Secret is deleted.

There are two gatekeepers, each with its own `certgen run` as in a pod. One is the mutating webhook, the other the
validating one, both with failurePolicy Fail and the chart's timeouts. With ALTERSHIELD_TEST_LEAF_LIFETIME=120,
certificates live two minutes and the test takes minutes.
"""

import asyncio
import base64
import contextlib
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from certgen.webhook_configurations import KINDS
from command.install.webhooks import configurations
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.processes import free_ports
from kube_base.resources import DEPLOYMENTS, NAMESPACES, SECRETS
from tests.e2e.sleep import SLEEP
from tests.support.polling import eventually, until
from tests.support.processes import running

pytestmark = pytest.mark.xdist_group("stories")

LEAF_LIFETIME = int(os.environ.get("ALTERSHIELD_TEST_LEAF_LIFETIME", "20"))
CA_LIFETIME = 3 * LEAF_LIFETIME
SETTLE = 2
RATE = 10  # admissions per second
HANDSHAKES = 5  # per second and gatekeeper: API servers keep their connections, so most renewals need no handshake


@dataclass
class Pod:
    """A gatekeeper and its certgen."""

    directory: Path
    port: int
    health_port: int
    certgen_arguments: list[str]
    gatekeeper_arguments: list[str]

    @contextlib.contextmanager
    def gatekeeper(self) -> Iterator[None]:
        with running(_python("gatekeeper", *self.gatekeeper_arguments), self.directory / "gatekeeper.log"):
            eventually(self._is_ready, f"the gatekeeper of {self.directory}")
            yield

    def certgen(self) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        command = _python("certgen", "run", *self.certgen_arguments)
        return running(command, self.directory / "certgen.log", may_end=True)  # one is killed

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def pod(kubeconfig: Path, directory: Path, namespace: str, ports: list[int]) -> Pod:
    directory.mkdir()
    tls = directory / "tls"
    common = ["--kubeconfig", str(kubeconfig)]
    return Pod(
        directory,
        ports[0],
        ports[1],
        [
            *(*common, "--system-namespace", namespace, "--webhook-configuration", namespace, "--san", "127.0.0.1"),
            *("--leaf-lifetime", str(LEAF_LIFETIME), "--ca-lifetime", str(CA_LIFETIME), "--settle", str(SETTLE)),
            *("--directory", str(tls), "--metrics-port", "0", "--log-level", "debug"),
        ],
        [
            *(*common, "--host", "127.0.0.1", "--port", str(ports[0]), "--metrics-port", str(ports[1])),
            *("--tls-cert-file", str(tls / "tls.crt"), "--tls-private-key-file", str(tls / "tls.key")),
            *("--shutdown-delay", "0", "--log-level", "debug"),
        ],
    )


@dataclass
class Load:
    """Admissions and TLS handshakes, with their failures."""

    client: Client
    namespace: str
    began: float = field(default_factory=time.monotonic)
    admissions: int = 0
    handshakes: int = 0
    failures: list[str] = field(default_factory=list)
    authorities: dict[x509.Certificate, None] = field(default_factory=dict)
    leaves: set[bytes] = field(default_factory=set)
    published: tuple[x509.Certificate, ...] = ()
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def admit(self) -> None:
        """Create Deployments as dry runs at a constant rate, independent of how long each takes."""
        deployment = json.loads(SLEEP)
        path = DEPLOYMENTS.path(self.namespace)

        async def once() -> None:
            try:
                await self.client.request("POST", path, query={"dryRun": "All"}, body=deployment)
                self.admissions += 1
            except KubernetesError as error:
                self._failed(f"admission: {error}")

        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(once())
                await asyncio.sleep(1 / RATE)

    async def shake_hands(self, port: int, kind: int) -> None:
        """Open connections that trust the present bundle of the webhook configuration. A handshake that takes longer
        than the settling time (less one second, because the API's times are whole seconds) may fail: its bundle is too
        old."""
        while True:
            await asyncio.sleep(1 / HANDSHAKES)
            asked = time.monotonic()
            configuration: dict[str, Any] = await self.client.get(KINDS[kind], self.namespace)
            bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
            self.published = tuple(x509.load_pem_x509_certificates(bundle))
            self.authorities.update(dict.fromkeys(self.published))
            context = ssl.create_default_context(cadata=bundle.decode())
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                self.leaves.add(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
                writer.close()
                await writer.wait_closed()
                self.handshakes += 1
                self.progress.set()
            except OSError as error:
                if time.monotonic() - asked < SETTLE - 1:
                    self._failed(f"handshake: {error}")

    def _failed(self, what: str) -> None:
        self.failures.append(f"{time.monotonic() - self.began:.1f} s: {what}")

    async def until(self, met: Callable[[], bool], waiting_for: str) -> None:
        while not met():
            self.progress.clear()
            await self.progress.wait()
        print(f"{time.monotonic() - self.began:5.1f} s: {waiting_for}")


@pytest.mark.timeout(3 * CA_LIFETIME + 600)
async def test_no_admission_fails_while_certificates_and_authorities_rotate(
    installed: Path,
    tmp_path: Path,
) -> None:
    namespace = f"rotation-{uuid.uuid4().hex[:8]}"
    free = free_ports(4)
    pods = [pod(installed, tmp_path / name, namespace, ports) for name, ports in (("one", free[:2]), ("two", free[2:]))]
    async with await Client.connect(str(installed)) as client, contextlib.AsyncExitStack() as stack:
        await client.create(NAMESPACES, {"metadata": {"name": namespace, "labels": {"rotation": namespace}}})
        stack.push_async_callback(client.delete, NAMESPACES, namespace)
        for resource, obj, serving in zip(KINDS, _configurations(namespace), pods, strict=True):
            webhook = obj["webhooks"][0]
            webhook["clientConfig"]["url"] = f"https://127.0.0.1:{serving.port}{webhook['clientConfig']['url']}"
            await client.create(resource, obj)
            stack.push_async_callback(client.delete, resource, namespace)
        stack.enter_context(pods[0].certgen())
        killed = stack.enter_context(contextlib.ExitStack())
        victim = killed.enter_context(pods[1].certgen())
        for each in pods:
            stack.enter_context(each.gatekeeper())

        load = Load(client, namespace)
        await _first_admission(load)
        tasks = [
            asyncio.create_task(work)
            for work in (load.admit(), load.shake_hands(pods[0].port, 0), load.shake_hands(pods[1].port, 1))
        ]
        await load.until(lambda: len(load.leaves) >= 2, "the certificate was renewed")
        victim.kill()
        killed.close()
        stack.enter_context(pods[1].certgen())
        await load.until(lambda: len(load.authorities) >= 2, "a new CA is published beside the old one")
        first = next(iter(load.authorities))
        await load.until(lambda: first not in load.published, "the first CA has expired and left")
        await client.delete(SECRETS, "altershield-tls", namespace)
        known = set(load.authorities)
        await load.until(lambda: bool(set(load.published) - known), "the Secret was deleted and made again")
        before = set(load.leaves)
        await load.until(lambda: bool(load.leaves - before), "the new Secret's certificate is served")
        assert not any(task.done() for task in tasks), "the load ended early"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        print(
            f"{load.admissions} admissions, {load.handshakes} handshakes, {len(load.leaves)} certificates of "
            f"{len(load.authorities)} CAs, {len(load.failures)} failures"
        )
        assert load.failures == []
        assert load.admissions > LEAF_LIFETIME * RATE / 2
        assert load.handshakes > LEAF_LIFETIME * HANDSHAKES / 2
        assert not _names_a_key(tmp_path), "keys are never logged"


def _names_a_key(logs: Path) -> list[str]:
    encoded = base64.b64encode(b"-----BEGIN PRIVATE").decode()
    texts = [log.read_text() for log in logs.glob("*/*.log")]
    assert texts, "there are no logs"
    return [text for text in texts if "PRIVATE KEY" in text or encoded in text]


async def _first_admission(load: Load) -> None:
    """Wait until the API server calls the webhooks with success. Failures before that are part of the installation."""
    deployment = json.loads(SLEEP)
    path = DEPLOYMENTS.path(load.namespace)

    async def admitted() -> bool:
        try:
            answer = await load.client.request("POST", path, query={"dryRun": "All"}, body=deployment)
        except KubernetesError:
            return False
        return b"admission-webhook-altershield.antgroup.com/version" in answer

    await until(admitted, "a first admission")


def _configurations(name: str) -> list[dict[str, Any]]:
    """The product's webhook configurations, restricted to the test's namespace."""
    made = configurations(name, "", b"", system_namespace="none")
    for number, obj in enumerate(made):
        (webhook, *_) = obj["webhooks"]
        obj["webhooks"] = [webhook]
        webhook["name"] = f"{('mutate', 'validate')[number]}.rotation.test"
        webhook["namespaceSelector"] = {"matchLabels": {"rotation": name}}
        webhook["failurePolicy"] = "Fail"
    return made
