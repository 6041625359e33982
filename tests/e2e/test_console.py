"""The pages of the console, with the rights of their reader."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import yaml

from console.local import serving
from kube_base.access.client import Client
from tests.e2e.gates import freeze
from tests.e2e.sleep import VERSION, release, sleep, suspend
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

SYSTEM = "altershieldoperator-system"
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) \u202egnp \u200b" + "x" * 1100


class Reader(NamedTuple):
    session: aiohttp.ClientSession
    base: str

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(self.base + path) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def reading(kubeconfig: Path) -> AsyncIterator[Reader]:
    """Somebody who has signed in."""
    async with (
        await Client.connect(str(kubeconfig)) as client,
        serving(client, 0, SYSTEM) as new_address,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        address = new_address()
        reader = Reader(session, address.rpartition("/sign-in/")[0])
        async with session.get(address) as answer:
            assert answer.status == 200
        yield reader


def suspended(kubectl: Kubectl) -> str:
    """A release that a person failed with a hostile reason. Returns its version."""
    version = release(kubectl, sleep(replicas=2))
    pod = suspend(kubectl, version)
    name = f"sleep--x--{version}--x--1"
    result = {**pod, "verdict": "unpass", "message": HOSTILE[:1024]}
    kubectl.merge("changepods", name, {"status": {"podResults": [result]}}, "status")
    eventually(lambda: "alert(1)" in json.dumps(kubectl.json("changeworkload", f"sleep--x--{version}")), "the reason")
    return version


async def test_pages_say_what_needs_somebody_and_why(kubectl: Kubectl) -> None:
    version = suspended(kubectl)
    async with reading(kubectl.kubeconfig) as reader:
        status, text = await reader.get(f"/ns/{kubectl.namespace}")
        assert (status, "suspended" in text, version[:12] in text) == (200, True, True)
        path = f"/ns/{kubectl.namespace}/deployment/sleep"
        assert f'href="{path}"' in text
        status, text = await reader.get(path)
        assert status == 200
        assert f"altershield approve deployment/sleep -n {kubectl.namespace}" in text
        for page in (await reader.get("/"), await reader.get(path), await reader.get(f"/ns/{kubectl.namespace}")):
            assert "&lt;script&gt;" in page[1]
            assert "<script" not in page[1]
            assert "U+202E" in page[1]
            assert "\u202e" not in page[1]
            assert "\u200b" not in page[1]
    assert kubectl.labels("deployment", "sleep")[VERSION] == version


async def test_history_and_gates_are_pages(kubectl: Kubectl) -> None:
    version = release(kubectl, sleep(replicas=1))
    second = release(kubectl, sleep(replicas=1, image="busybox:2"))
    async with reading(kubectl.kubeconfig) as reader:
        assert "has no release gates" in (await reader.get(f"/gates/{kubectl.namespace}"))[1]
        kubectl.apply(freeze(reason="<b>sale</b>"))
        status, text = await reader.get(f"/ns/{kubectl.namespace}/deployment/sleep/history")
        assert status == 200
        assert text.index(second[:12]) < text.index(version[:12])
        assert text.count("present</td>") == 1
        status, text = await reader.get(f"/gates/{kubectl.namespace}")
        assert (status, "ReleaseFreeze" in text, "&lt;b&gt;sale&lt;/b&gt;" in text) == (200, True, True)


async def test_page_of_what_is_missing_says_so(kubectl: Kubectl) -> None:
    async with reading(kubectl.kubeconfig) as reader:
        for path, words in (
            (f"/ns/{kubectl.namespace}/deployment/nothing", "not found"),
            (f"/ns/{kubectl.namespace}/configmap/nothing", "is not a workload"),
            (f"/ns/{kubectl.namespace}/deployment/NOTHING", "no workload can have the name"),
            (f"/ns/{kubectl.namespace}/deployment/nothing/history", "not found"),
            ("/nothing", "no such page"),
        ):
            status, text = await reader.get(path)
            assert (status, words in text) == (404, True), path


async def test_reader_of_one_namespace_sees_no_other(kubectl: Kubectl, tmp_path: Path) -> None:
    suspended(kubectl)
    name = f"reader-{kubectl.namespace}"
    for role in ("view", "altershield-view"):
        kubectl("create", "rolebinding", f"{name}-{role}", f"--clusterrole={role}", f"--user={name}")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    config = kubectl.config()
    config["users"][0]["user"]["as"] = name
    kubeconfig.write_text(yaml.safe_dump(config))
    async with reading(kubeconfig) as reader:
        eventually(lambda: kubectl.json("rolebindings")["items"], "the rights")
        status, text = await reader.get(f"/ns/{kubectl.namespace}/deployment/sleep")
        assert (status, "find error" in text or "alert(1)" in text) == (200, True)
        assert "Others may run, with the ClusterRole altershield-verdicts" in text
        answers = [await reader.get(path) for path in ("/", "/ns/default/deployment/a", "/ns/kube-system/deployment/b")]
        for status, text in answers:
            assert status == 403
            assert "ask for the ClusterRole" in text
        assert name in (await reader.get("/me"))[1]
