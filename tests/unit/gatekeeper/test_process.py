"""`python -m gatekeeper`: start, readiness, new certificates and shutdown."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from altershield.api import labels, names
from altershield.api.resources import CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from altershield.workloads import change_workload_name
from tests.support.polling import until
from tests.support.stub_api import StubApi, is_list
from tests.support.workloads import GROUP_KINDS

from .reviews import MUTATING_PATH, VALIDATING_PATH, deployment, encode, released, review, version_of
from .serving import Files, session, trust

JSON = {"Content-Type": "application/json"}


@dataclass
class Process:
    process: asyncio.subprocess.Process
    port: int = 0
    metrics_port: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)

    async def line(self, message: str) -> dict[str, Any]:
        """Read the log up to the line with `message`."""
        assert self.process.stderr is not None
        while text := await self.process.stderr.readline():
            self.log.append(json.loads(text))
            if self.log[-1]["message"] == message:
                return self.log[-1]
        raise AssertionError(f"the process ended without the log line {message!r}: {self.log}")

    async def readiness(self, client: aiohttp.ClientSession) -> tuple[int, str]:
        async with client.get(f"http://127.0.0.1:{self.metrics_port}/readyz") as found:
            return found.status, await found.text()

    async def ready(self, client: aiohttp.ClientSession) -> None:
        async def is_ready() -> bool:
            return (await self.readiness(client))[0] == 200

        await until(is_ready)

    async def post(self, client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"https://127.0.0.1:{self.port}{path}"
        async with client.post(url, data=encode(body), headers=JSON) as found:
            assert found.status == 200
            return json.loads(await found.read())["response"]  # type: ignore[no-any-return]


@contextlib.asynccontextmanager
async def running(api: StubApi, directory: Path, *options: str) -> AsyncIterator[Process]:
    files = Files.at(directory)
    kubeconfig = directory / "kubeconfig"
    cluster = {"name": "stub", "cluster": {"server": api.configuration.host}}
    context = {"name": "stub", "context": {"cluster": "stub", "user": "stub"}}
    user = {"name": "stub", "user": {"token": "very-secret-token"}}
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "contexts": [context],
                "users": [user],
                "current-context": "stub",
            }
        )
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gatekeeper", "--kubeconfig", str(kubeconfig), "--host", "127.0.0.1"),
        *("--port", "0", "--metrics-port", "0", "--shutdown-delay", "0"),
        *("--tls-cert-file", str(files.certificate), "--tls-private-key-file", str(files.key), *options),
        stderr=asyncio.subprocess.PIPE,
    )
    found = Process(process)
    try:
        listening = await found.line("listening")
        found.port, found.metrics_port = listening["port"], listening["metrics_port"]
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
async def api() -> AsyncIterator[StubApi]:
    api = StubApi()
    await api.start()
    yield api
    await api.stop()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with session() as client:
        yield client


def failed_release(version: str, uid: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": change_workload_name(GROUP_KINDS["Deployment"], "sleep", version),
            "namespace": "default",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sleep", "uid": uid, "controller": True}
            ],
        },
        "spec": {"changeWorkloadId": "x"},
        "status": {
            "status": "Failed",
            "conditions": [{"type": "RolledBack", "status": "True", "reason": "StartTimeout", "message": "it broke"}],
        },
    }


async def test_gatekeeper_reads_changeworkloads_and_settings_from_the_cluster(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    bad = released("busybo")
    version, uid = version_of(bad), bad["metadata"]["uid"]
    await api.put(CHANGE_WORKLOADS, failed_release(version, uid))
    async with running(api, tmp_path) as process:
        await process.ready(client)
        response = await process.post(client, VALIDATING_PATH, review(bad, released()))
        assert "it broke" in response["status"]["message"]

        # another workload of the same name: the ChangeWorkload is from before it was created
        other = released()
        other["metadata"]["uid"] = "another"
        assert (await process.post(client, VALIDATING_PATH, review(bad, other)))["allowed"] is True

        setting = {
            "metadata": {"name": "blocking", "namespace": names.SYSTEM_NAMESPACE},
            "spec": {"type": "isBlockingUp", "enable": False},
        }
        await api.put(OPS_CONFIG_INFOS, setting)

        async def passes() -> bool:
            return bool((await process.post(client, VALIDATING_PATH, review(bad, released())))["allowed"])

        await until(passes)


async def test_service_account_option_names_the_reconciler(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    async with running(api, tmp_path, "--service-account", "system:serviceaccount:ops:reconciler") as process:
        await process.ready(client)
        body = review(released("busybox:2"), released())
        assert (await process.post(client, VALIDATING_PATH, body))["allowed"] is True
        body["request"]["userInfo"]["username"] = "system:serviceaccount:ops:reconciler"
        denied = await process.post(client, VALIDATING_PATH, body)
        assert "AlterShield's account may release the template" in denied["status"]["message"]


async def test_gatekeeper_is_ready_only_with_certificate_and_filled_caches(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    hold = asyncio.Event()

    async def slowly(request: Any) -> Any:
        await hold.wait()
        return await api.answer(request)

    api.fault(is_list, slowly, times=2)
    async with running(api, tmp_path) as process:
        code, why = await process.readiness(client)
        assert code == 503
        assert why.startswith(
            "there is no serving certificate yet\nthe cache of changeworkloads is not filled yet\nthe cache of "
            "opsconfiginfoes is not filled yet\n"
        )
        Files.at(tmp_path).issue()
        await process.line("serving certificate loaded")
        code, why = await process.readiness(client)
        assert code == 503
        assert "certificate" not in why
        hold.set()
        await process.ready(client)


async def test_ready_gatekeeper_stays_ready_without_the_api_server(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    bad = released("busybo")
    await api.put(CHANGE_WORKLOADS, failed_release(version_of(bad), bad["metadata"]["uid"]))
    async with running(api, tmp_path) as process:
        await process.ready(client)
        await api.stop()
        await process.line("cannot list or watch, retrying")
        assert (await process.readiness(client))[0] == 200
        assert (await process.post(client, VALIDATING_PATH, review(bad, released())))["allowed"] is False


async def test_gatekeeper_starts_without_the_api_server_and_waits_for_it(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    api = StubApi()
    await api.start()
    await api.stop()
    async with running(api, tmp_path) as process:
        assert (await process.readiness(client))[0] == 503
        await api.start()
        await process.ready(client)
    await api.stop()


async def test_new_certificate_is_served_without_a_restart_of_the_process(api: StubApi, tmp_path: Path) -> None:
    files = Files.at(tmp_path)
    files.issue()
    async with running(api, tmp_path) as process:
        files.issue()
        await process.line("serving certificate loaded")
        async with session() as client:
            await process.ready(client)
            assert (await process.post(client, MUTATING_PATH, review(deployment())))["allowed"] is True
        _, writer = await asyncio.open_connection("127.0.0.1", process.port, ssl=trust())
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    assert ssl.DER_cert_to_PEM_cert(shown).encode() == files.certificate.read_bytes()


async def test_after_sigterm_gatekeeper_is_not_ready_but_answers_during_the_shutdown_delay(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    async with running(api, tmp_path, "--shutdown-delay", "60") as process:
        await process.ready(client)
        process.process.terminate()
        await process.line("shutting down")
        assert await process.readiness(client) == (503, "shutting down\n")
        async with session() as late:
            assert (await process.post(late, MUTATING_PATH, review(deployment())))["allowed"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_shutdown_answers_the_request_in_flight_and_exits_with_0(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession, number: signal.Signals
) -> None:
    """The request in flight is answered, the connections are closed, and the exit code is 0."""
    Files.at(tmp_path).issue()
    async with running(api, tmp_path, "--shutdown-delay", "0") as process:
        await process.ready(client)
        await process.post(client, MUTATING_PATH, review(deployment()))  # opens a connection that stays open
        reader, writer = await asyncio.open_connection("127.0.0.1", process.port, ssl=trust())
        data = encode(review(deployment()))
        head = f"POST {MUTATING_PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data[:50])
        await writer.drain()

        process.process.send_signal(number)
        await process.line("draining")
        with pytest.raises(OSError):  # noqa: PT011  (refused, or cut before it was accepted)
            await asyncio.open_connection("127.0.0.1", process.port, ssl=trust())
        writer.write(data[50:])
        found = await reader.read()
        assert found.startswith(b"HTTP/1.1 200")
        assert b'"allowed":true' in found
        assert await process.process.wait() == 0


async def test_no_request_fails_during_a_shutdown_under_load(api: StubApi, tmp_path: Path) -> None:
    """Open connections are closed only after an answer. At the end, new connections are refused."""
    Files.at(tmp_path).issue()
    async with running(api, tmp_path, "--shutdown-delay", "3") as process, session(limit=8) as client:
        await process.ready(client)
        answered = 0

        async def load() -> None:
            nonlocal answered
            with contextlib.suppress(
                aiohttp.ClientConnectorError
            ):  # the connection was refused, so the request was not sent
                while True:
                    await process.post(client, MUTATING_PATH, review(deployment()))
                    answered += 1

        async def answered_many() -> bool:
            return answered > 100

        loads = [asyncio.ensure_future(load()) for _ in range(8)]
        await until(answered_many)
        process.process.terminate()
        await process.line("shutting down")
        seen = answered
        # read the log, because the process blocks when the pipe is full
        assert process.process.stderr is not None
        await asyncio.gather(process.process.stderr.read(), *loads)
        assert answered > seen
        assert await process.process.wait() == 0


async def test_second_signal_stops_the_process_at_once_with_exit_code_1(api: StubApi, tmp_path: Path) -> None:
    Files.at(tmp_path).issue()
    async with running(api, tmp_path, "--shutdown-delay", "60") as process:
        process.process.terminate()
        await process.line("shutting down")
        process.process.terminate()
        assert await process.process.wait() == 1


async def test_log_has_every_decision_and_no_secret_after_the_shutdown(
    api: StubApi, tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    Files.at(tmp_path).issue()
    async with running(api, tmp_path) as process:
        await process.ready(client)
        await process.post(client, MUTATING_PATH, review(deployment(own={labels.SUSPEND: "1"})))
        process.process.terminate()
        assert process.process.stderr is not None
        rest = (await process.process.stderr.read()).decode()
        assert [line for line in rest.splitlines() if json.loads(line)["message"] == "patched"]
        assert "very-secret-token" not in rest + json.dumps(process.log)
        assert "PRIVATE KEY" not in rest + json.dumps(process.log)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--kubeconfig", "/nonexistent"], "kubeconfig"),
        (["--log-level", "loud"], "loud"),
        (["--host", "192.0.2.1", "--kubeconfig", "KUBECONFIG"], "--host"),
    ],
)
async def test_invalid_option_is_reported_in_one_sentence_with_exit_code_2(
    tmp_path: Path, options: list[str], word: str
) -> None:
    files = Files.at(tmp_path)
    files.issue()
    (tmp_path / "kubeconfig").write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {token: t}}]}"
    )
    options = [str(tmp_path / "kubeconfig") if option == "KUBECONFIG" else option for option in options]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gatekeeper", "--port", "0", "--metrics-port", "0", *options),
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "ALTERSHIELD_TLS_CERT_FILE": str(files.certificate),
            "ALTERSHIELD_TLS_PRIVATE_KEY_FILE": str(files.key),
        },
    )
    _, error = await process.communicate()
    assert process.returncode == 2
    assert error.startswith(b"Error: ") or b'"level"' in error
    assert word in error.decode()
    assert b"Traceback" not in error
