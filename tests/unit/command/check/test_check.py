"""What `altershield check` says before it creates anything."""

import pytest
from aiohttp import web

from altershield.api import labels
from altershield.api.names import LEASE, SYSTEM_NAMESPACE
from command.check.command import carry_out
from command.check.governed import require_governed
from command.check.objects import manifest
from command.check.steps import Steps
from command.check.waiting import CheckFailedError
from kube_base.access.client import Client
from kube_base.errors import UsageError
from kube_base.resources import LEASES, NAMESPACES
from tests.support.stub_api import StubApi, answer, serving

GOVERNED = {labels.GOVERNED: labels.GOVERNED_VALUE}


async def check(client: Client, namespace: str) -> None:
    await carry_out(client, Steps(client, namespace, manifest("busybox", {}, ()), ()), namespace)


def changes(api: StubApi) -> list[web.Request]:
    return [request for request in api.requests if request.method != "GET"]


@pytest.mark.parametrize(
    ("namespace", "own", "text"),
    [
        ("none", {}, '^there is no namespace "none"; set a governed namespace with -n$'),
        (
            "shop",
            {labels.GOVERNED: "no"},
            '^namespace "shop" is not governed, because it does not have the label '
            "admission-webhook-altershield=enabled; set a governed namespace with -n, or run: "
            "kubectl label namespace shop admission-webhook-altershield=enabled --overwrite$",
        ),
        (SYSTEM_NAMESPACE, GOVERNED, f'^AlterShield never governs namespace "{SYSTEM_NAMESPACE}"; set another'),
    ],
)
async def test_check_of_an_ungoverned_namespace_fails_at_once_and_changes_nothing(
    namespace: str, own: dict[str, str], text: str
) -> None:
    async with serving() as (api, client):
        for name in ("shop", SYSTEM_NAMESPACE):
            await api.put(NAMESPACES, {"metadata": {"name": name, "labels": own}})
        with pytest.raises(UsageError, match=text):
            await check(client, namespace)
        assert changes(api) == []


async def test_check_of_the_namespace_in_which_altershield_runs_says_so() -> None:
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "gate"}})
        await api.put(LEASES, {"metadata": {"name": LEASE, "namespace": "gate"}, "spec": {"holderIdentity": "a"}})
        with pytest.raises(UsageError) as raised:
            await check(client, "gate")
        assert changes(api) == []
    assert str(raised.value) == (
        'AlterShield runs in namespace "gate", and never governs its own namespace; set another namespace with -n'
    )


async def test_check_of_a_namespace_in_which_altershield_ran_before_asks_for_the_label() -> None:
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "gate"}})
        await api.put(LEASES, {"metadata": {"name": LEASE, "namespace": "gate"}, "spec": {"holderIdentity": ""}})
        with pytest.raises(UsageError, match="does not have the label"):
            await check(client, "gate")


async def test_check_of_a_governed_namespace_reads_only_the_namespace() -> None:
    """The account of `helm test` may not read more."""
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "shop", "labels": GOVERNED}})
        await require_governed(client, "shop")
        assert [request.path for request in api.requests] == [NAMESPACES.path(name="shop")]


@pytest.mark.parametrize("readable", [True, False])
async def test_check_without_permission_says_which_roles_it_needs(readable: bool) -> None:
    refusal = 'deployments.apps "altershield-check" is forbidden: User "ann" cannot delete resource "deployments"'
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "shop", "labels": GOVERNED}})
        if not readable:
            api.fault(lambda request: request.path == NAMESPACES.path(name="shop"), answer(403, "Forbidden"))
        api.fault(lambda request: request.method == "DELETE", answer(403, refusal), times=9)
        with pytest.raises(CheckFailedError) as raised:
            await check(client, "shop")
    assert str(raised.value) == (
        f'cannot carry out the check in namespace "shop": 403 {refusal}; ask for the ClusterRoles edit and '
        'altershield-verdicts in namespace "shop"'
    )
