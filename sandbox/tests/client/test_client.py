"""The client, the informer and the event recorder, on the sandbox's API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.client.client import Client
from kube_sandbox.client.errors import AlreadyExistsError, ConflictError, NotFoundError, ServerError, UnreachableError
from kube_sandbox.client.events import EventRecorder, ObjectRef
from kube_sandbox.client.informer import Informer
from kube_sandbox.client.resources import CONFIG_MAPS, EVENTS
from kube_sandbox.cluster.kinds import Bare
from kube_sandbox.errors import SettingError
from support.polling import until

SPACE = "default"


@pytest.fixture
def failing() -> list[int]:
    """The status codes of the next answers of the API server."""
    return []


@pytest.fixture
async def api(failing: list[int]) -> AsyncIterator[ApiServer]:
    @web.middleware
    async def fail(request: web.Request, handler: Handler) -> web.StreamResponse:
        if failing:
            return web.json_response({"message": "no"}, status=failing.pop())
        return await handler(request)

    async with ApiServer(middlewares=[fail], history=20) as api:
        yield api


@pytest.fixture
async def client(api: ApiServer, tmp_path: Path) -> AsyncIterator[Client]:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig())
    async with await Client.connect(str(kubeconfig)) as client:
        yield client


async def make(client: Client, *names: str) -> None:
    for name in names:
        await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, SPACE)


def names(informer: Informer[Bare]) -> set[str]:
    return {obj.metadata.name for obj in informer.all() if obj.metadata.namespace == SPACE}


@contextlib.asynccontextmanager
async def running(part: Informer[Bare] | EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(part.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_error_status_raises_the_matching_class(client: Client, failing: list[int]) -> None:
    await make(client, "a")
    with pytest.raises(AlreadyExistsError):
        await make(client, "a")
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, "b", SPACE)
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, "a", SPACE, uid="other")
    failing.append(503)
    with pytest.raises(ServerError, match="no"):
        await client.get(CONFIG_MAPS, "a", SPACE)


async def test_unreachable_server_is_named_in_the_error(api: ApiServer, client: Client) -> None:
    await api.stop()
    with pytest.raises(UnreachableError, match=f"no answer from the API server at {api.url} to GET"):
        await client.get(CONFIG_MAPS, "a", SPACE)


@pytest.mark.parametrize("content", [None, "", "a: [", "[]", "kind: Config"])
async def test_unusable_kubeconfig_raises_a_setting_error_of_one_line(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingError, match="--kubeconfig") as failed:
        await Client.connect(str(path))
    assert "\n" not in str(failed.value)


async def test_informer_updates_its_cache_and_calls_handlers(client: Client) -> None:
    await make(client, "a", "b")
    told: list[tuple[str, str]] = []
    informer = Informer(client, CONFIG_MAPS, Bare)
    informer.add_index("name", lambda obj: [obj.metadata.name])
    informer.add_handler(
        lambda old, new: told.append((old.metadata.name if old else "", new.metadata.name if new else ""))
    )
    async with running(informer):
        await informer.wait_synced()
        assert names(informer) == {"a", "b"}
        await client.delete(CONFIG_MAPS, "a", SPACE)
        await make(client, "c")
        await until(lambda: names(informer) == {"b", "c"})
        await informer.patch({"data": {"x": "y"}}, "c", SPACE)
        assert told[-1] == ("c", "c")
    assert set(told) >= {("", "a"), ("", "b"), ("a", ""), ("", "c")}
    assert informer.by_index("name", "a") == []
    assert [obj.metadata.name for obj in informer.by_index("name", "b")] == ["b"]


async def test_informer_caches_its_own_writes_at_once_and_ignores_older_versions(client: Client) -> None:
    informer = Informer(client, CONFIG_MAPS, Bare)
    async with running(informer):
        await informer.wait_synced()
        made = await informer.create({"metadata": {"name": "a"}}, SPACE)
        assert informer.get(SPACE, "a") == made
        changed = await informer.patch({"data": {"x": "y"}}, "a", SPACE)
        informer._cached(made)
        assert informer.get(SPACE, "a") == changed
        await client.delete(CONFIG_MAPS, "a", SPACE)
        await until(lambda: informer.get(SPACE, "a") is None)
        informer._cached(changed)
        assert informer.get(SPACE, "a") is None


async def test_informer_lists_again_after_an_expired_version_or_a_server_error(
    client: Client, failing: list[int]
) -> None:
    await make(client, "a")
    informer = Informer(client, CONFIG_MAPS, Bare)
    async with running(informer):
        await informer.wait_synced()
    await client.delete(CONFIG_MAPS, "a", SPACE)
    await make(client, *(f"n{number}" for number in range(100)))  # more changes than the API server keeps
    failing.append(500)
    async with running(informer):
        await until(lambda: names(informer) == {f"n{number}" for number in range(100)})


async def test_repeated_event_raises_the_count(client: Client, failing: list[int]) -> None:
    recorder = EventRecorder(client, "test")
    about = ObjectRef("v1", "ConfigMap", "a", SPACE)

    async def until_written(*wanted: tuple[str, int]) -> None:
        async with asyncio.timeout(20):
            while True:
                found = (await client.list(EVENTS, SPACE)).items
                if sorted((event["message"], event["count"]) for event in found) == sorted(wanted):
                    return
                await asyncio.sleep(0.01)

    async with running(recorder):
        recorder.event(about, "Normal", "Done", "once")
        recorder.event(about, "Normal", "Done", "again")
        recorder.event(about, "Normal", "Done", "again")
        await until_written(("again", 2), ("once", 1))
        failing.append(500)
        recorder.event(about, "Normal", "Done", "once")
        await until(lambda: not failing)
        await until_written(("again", 2), ("once", 2))
