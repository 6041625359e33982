"""`altershield uninstall` with an API server that refuses, is slow or stops. Time is simulated."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator

import pytest
import typer
from aiohttp import web

from altershield.api import labels
from altershield.releases import history
from command.install.crds import crds
from command.uninstall import LeftOverError, delete_installation
from kube_base.access.client import Client
from kube_base.access.errors import UnreachableError
from kube_base.resources import (
    CLUSTER_ROLE_BINDINGS,
    CRDS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from tests.support.stub_api import Object, StubApi, answer, serving, status

pytestmark = pytest.mark.looptime

INSTALLED = (DEPLOYMENTS, CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
SAFE_ORDER = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS, DEPLOYMENTS, CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS)


def obj(resource: Resource, uid: str = "") -> Object:
    where = {"namespace": "system"} if resource.namespaced else {}
    return {"metadata": {"name": "altershield", "uid": uid or resource.plural, **where}}


@contextlib.asynccontextmanager
async def installed() -> AsyncIterator[tuple[StubApi, Client]]:
    async with serving() as (api, client):
        for resource in INSTALLED:
            await api.put(resource, obj(resource))
        yield api, client


def left(api: StubApi) -> set[str]:
    return {place.plural for place in api.objects}


def deletes(request: web.Request) -> bool:
    return request.method == "DELETE"


async def test_webhooks_are_deleted_first_and_deployments_next(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):
        await delete_installation(client, yes=True)
        assert [request.path.split("/")[-2] for request in api.requests if deletes(request)] == [
            resource.plural for resource in SAFE_ORDER
        ]
        assert left(api) == set()
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in printed if line.startswith("deleted")] == [
        ["deleted", resource.kind] for resource in SAFE_ORDER
    ]


async def test_crds_lose_their_protection_before_they_are_deleted() -> None:
    (first, *_) = crds()
    async with serving() as (api, client):
        await api.put(CRDS, {"metadata": {**first["metadata"], "uid": "1"}})
        await delete_installation(client, crds=True, yes=True)
        changes = [(each.method, each.path.split("/")[-1]) for each in api.requests if each.method != "GET"]
        assert list(dict.fromkeys(changes)) == [
            ("PATCH", first["metadata"]["name"]),
            ("DELETE", first["metadata"]["name"]),
        ]
        assert left(api) == set()


def entry(name: str, **annotations: str) -> Object:
    metadata = {"name": name, "namespace": "shop", "uid": name, "labels": {labels.HISTORY: "web"}}
    return {"metadata": metadata | {"annotations": annotations}}


@contextlib.asynccontextmanager
async def with_history() -> AsyncIterator[tuple[StubApi, Client]]:
    async with serving() as (api, client):
        await api.put(CRDS, {"metadata": {"name": crds()[0]["metadata"]["name"], "uid": "1"}})
        await api.put(history.RESOURCE, entry("web--x--1", **{history.ANNOTATION: "{}"}))
        await api.put(history.RESOURCE, entry("copied"))
        await api.put(history.RESOURCE, {"metadata": {"name": "db-1", "namespace": "shop", "uid": "db-1"}})
        yield api, client


async def test_option_crds_deletes_the_history_of_workloads_but_no_other_controllerrevision(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with with_history() as (api, client):
        await delete_installation(client, crds=True, yes=True)
        assert {obj["metadata"]["name"] for obj in api.objects.values()} == {"copied", "db-1"}
    assert "deleted ControllerRevision shop/web--x--1\n" in capsys.readouterr().out


async def test_history_of_workloads_is_kept_without_the_option_crds(capsys: pytest.CaptureFixture[str]) -> None:
    async with with_history() as (api, client):
        await delete_installation(client, yes=True)
        assert left(api) == {CRDS.plural, history.RESOURCE.plural}
        assert len(api.objects) == 4
    kept = f"kept each ControllerRevision with the label {labels.HISTORY}; --crds deletes them\n"
    assert kept in capsys.readouterr().out


async def test_history_that_may_not_be_listed_or_deleted_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def concerns(request: web.Request) -> bool:
        return "controllerrevisions" in request.path

    async with with_history() as (api, client):
        api.fault(lambda request: deletes(request) and concerns(request), answer(403, "Forbidden"))
        with pytest.raises(LeftOverError, match="are left"):
            await delete_installation(client, crds=True, yes=True)
        api.fault(concerns, answer(403, "Forbidden"), times=9)
        with pytest.raises(LeftOverError, match="may be left"):
            await delete_installation(client, crds=True, yes=True)
    said = capsys.readouterr().err
    assert "cannot delete ControllerRevision shop/web--x--1: 403 Forbidden" in said
    assert "cannot list controllerrevisions: 403 Forbidden" in said


async def test_dry_run_deletes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):
        await delete_installation(client, dry_run=True)
        assert left(api) == {resource.plural for resource in INSTALLED}
    assert "would delete Deployment system/altershield" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "goes"), [("n\n", False), ("\n", False), ("y\n", True)])
async def test_uninstall_asks_before_it_deletes(said: str, goes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    async with installed() as (api, client):
        if goes:
            await delete_installation(client)
        else:
            with pytest.raises(typer.Abort):
                await delete_installation(client)
        assert (left(api) == set()) is goes


async def test_uninstall_retries_while_the_api_server_is_overloaded() -> None:
    async with installed() as (api, client):
        api.fault(lambda request: True, answer(429, "TooManyRequests", **{"Retry-After": "5"}), times=20)
        api.fault(deletes, answer(503), times=3)
        await delete_installation(client, yes=True)
        assert left(api) == set()


async def test_refused_deletion_is_reported_and_the_rest_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    def concerns(request: web.Request) -> bool:
        return deletes(request) and "validatingwebhook" in request.path

    async with installed() as (api, client):
        api.fault(concerns, answer(403, "Forbidden"))
        with pytest.raises(LeftOverError):
            await delete_installation(client, yes=True)
        assert left(api) == {VALIDATING_WEBHOOKS.plural}
        refusal = "cannot delete ValidatingWebhookConfiguration altershield: 403 Forbidden"
        assert refusal in capsys.readouterr().err
        await delete_installation(client, yes=True)
        assert left(api) == set()


async def test_forbidden_list_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):
        api.fault(lambda request: request.path.endswith("/serviceaccounts"), answer(403, "Forbidden"), times=99)
        with pytest.raises(LeftOverError, match="may be left"):
            await delete_installation(client, yes=True)
        assert left(api) == {SERVICE_ACCOUNTS.plural}
    assert "cannot list serviceaccounts: 403 Forbidden" in capsys.readouterr().err


async def test_uninstall_that_may_list_nothing_does_not_say_that_nothing_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.method == "GET", answer(401, "Unauthorized"), times=999)
        with pytest.raises(LeftOverError, match="may be left"):
            await delete_installation(client, yes=True)
    assert capsys.readouterr().out == ""


async def test_user_who_may_list_nothing_is_told_which_role_to_ask_for() -> None:
    async with serving() as (api, client):
        refusal = 'User "ann" cannot list resource "deployments"'
        api.fault(lambda request: request.method == "GET", answer(403, refusal), times=99)
        with pytest.raises(LeftOverError) as raised:
            await delete_installation(client, dry_run=True)
    assert str(raised.value) == (
        "objects of AlterShield may be left; ask for the ClusterRole cluster-admin in all namespaces, or fix the "
        "problems above, and run this command again"
    )


async def test_object_with_finalizers_is_reported_after_the_timeout(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):
        api.fault(lambda request: deletes(request) and "mutating" in request.path, answer(200))
        with pytest.raises(LeftOverError):
            await delete_installation(client, yes=True)
    assert "MutatingWebhookConfiguration altershield is not deleted after 60 s" in capsys.readouterr().err


async def test_object_that_a_gitops_tool_creates_again_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):
        tracked = obj(DEPLOYMENTS)
        tracked["metadata"]["annotations"] = {
            "argocd.argoproj.io/tracking-id": "shield:apps/Deployment:system/altershield"
        }
        await api.put(DEPLOYMENTS, tracked)

        async def put_back(request: web.Request) -> web.StreamResponse:
            done = await api.answer(request)
            await api.put(DEPLOYMENTS, obj(DEPLOYMENTS, uid="another"))
            return done

        api.fault(lambda request: deletes(request) and "/deployments/" in request.path, put_back)
        with pytest.raises(LeftOverError):
            await delete_installation(client, yes=True)
    said = capsys.readouterr().err
    assert "Argo CD manages Deployment system/altershield" in said
    assert "Deployment system/altershield was created again" in said


async def test_object_that_was_deleted_meanwhile_is_not_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    async with installed() as (api, client):

        async def gone(request: web.Request) -> web.StreamResponse:
            await api.remove(SERVICE_ACCOUNTS, "altershield", "system")
            return status(404, "NotFound")(request)

        api.fault(lambda request: deletes(request) and "serviceaccounts" in request.path, gone)
        await delete_installation(client, yes=True)
    assert "already deleted ServiceAccount system/altershield" in capsys.readouterr().out


async def test_stopped_api_server_is_an_unreachable_error() -> None:
    async with installed() as (api, client):
        await api.stop()
        with pytest.raises(UnreachableError):
            async with asyncio.timeout(60):
                await delete_installation(client, yes=True)
