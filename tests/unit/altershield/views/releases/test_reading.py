"""Reading releases from an API server that lacks kinds, refuses requests, or sends changes."""

from contextlib import aclosing

import msgspec
import pytest

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.views.releases.model import StatusError
from altershield.views.releases.reading import Query, Reader, queries
from altershield.views.selection import parse
from altershield.workloads import ADAPTERS
from tests.support.stub_api import answer, is_list, serving
from tests.support.workloads import BY_NAME
from tests.unit.altershield.views.builders import RUNNING, V1, manifest, release

STATEFUL_SETS = BY_NAME["StatefulSet"]


def test_queries_select_workloads_by_name_or_all_of_the_kind() -> None:
    assert queries(parse([])) == [Query(adapter, "") for adapter in ADAPTERS]
    assert queries(parse(["sts/db", "sts/db", "sts/web"])) == [
        Query(STATEFUL_SETS, "metadata.name=db", typed=True),
        Query(STATEFUL_SETS, "metadata.name=web", typed=True),
    ]
    assert queries(parse(["db"])) == [Query(adapter, "metadata.name=db") for adapter in ADAPTERS]


FORBIDDEN = 'User "ann" cannot list resource "x" in API group "y"'


@pytest.mark.parametrize("code", [404, 403])
async def test_kind_that_the_cluster_does_not_have_is_skipped(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """An API server answers 403 about a kind that it does not have to users who may not list everything."""
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/clonesets"), answer(code), times=2)
        assert (await Reader(client, "shop", parse(["clone"])).read()).workloads == []
        assert capsys.readouterr().err == ""
        await api.put(CHANGE_WORKLOADS, msgspec.to_builtins(release(RUNNING, "CloneSet")))
        assert (await Reader(client, "shop", parse(["clone"])).read()).workloads == []
        warned = "Warning: releases of clonesets.apps.kruise.io are not shown" in capsys.readouterr().err
        assert warned == (code == 403)


async def test_forbidden_list_of_a_built_in_kind_is_an_error() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/statefulsets"), answer(403, FORBIDDEN))
        with pytest.raises(StatusError, match=r'cannot list statefulsets.apps in namespace "shop": .*ClusterRole view'):
            await Reader(client, "shop", parse([])).read()


async def test_forbidden_list_of_an_optional_kind_that_the_user_named_is_an_error() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/clonesets"), answer(403, FORBIDDEN))
        with pytest.raises(
            StatusError, match=r'cannot list clonesets.apps.kruise.io in namespace "shop": .*ClusterRole altershield-vi'
        ):
            await Reader(client, "shop", parse(["cloneset/clone"])).read()


async def test_forbidden_list_of_changeworkloads_names_the_clusterrole_to_ask_for() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/changeworkloads"), answer(403, FORBIDDEN))
        with pytest.raises(
            StatusError, match=r"cannot list ChangeWorkloads in all namespaces: .*; ask for the ClusterR"
        ):
            await Reader(client, "", parse([])).read()


async def test_cluster_without_altershield_is_an_error() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/changeworkloads"), answer(404))
        with pytest.raises(StatusError, match=f"AlterShield is not installed in the cluster at {client.server}"):
            await Reader(client, "shop", parse([])).read()


async def test_changes_yields_a_snapshot_after_each_change_without_a_new_list() -> None:
    async with serving() as (api, client):
        await api.put(STATEFUL_SETS.resource, manifest("StatefulSet", "db"))
        reader = Reader(client, "shop", parse(["sts"]))
        (found,) = (await reader.read()).workloads
        assert (found.kind, found.metadata.name, found.version) == ("StatefulSet", "db", V1)
        async with aclosing(reader.changes()) as changes:
            first = await anext(changes)
            assert (len(first.workloads), len(first.releases)) == (1, 0)
            await api.put(CHANGE_WORKLOADS, msgspec.to_builtins(release(RUNNING, "StatefulSet", "db")))
            second = await anext(changes)
            assert [each.release.status.status for each in second.releases] == ["Running"]
            lists = [request for request in api.requests if is_list(request)]
            for version in range(5):
                await api.put(STATEFUL_SETS.resource, manifest("StatefulSet", "db", version=f"{version:032}"))
                assert (await anext(changes)).workloads[0].version == f"{version:032}"
            assert [request for request in api.requests if is_list(request)] == lists, (
                "a change must not cause a new list"
            )
