"""People's tools on the sandbox: who may list suspended workloads and request rollbacks."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from altershield.api import labels
from altershield.api.resources import CHANGE_WORKLOADS
from command.install import rbac
from kube_base.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    REPLICA_SETS,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
)
from reconciler.manager import Manager
from tests.fault.reconciler_cluster import Cluster, running_cluster, version

from .serving import Object, Served, serving

SUSPEND = "/openapi/altershield/suspend/deployment"
ROLLBACK = "/openapi/altershield/deployment/rollback"
WRITER = {"group": "apps", "resource": "deployments", "verb": "patch"}
STATUS = {"group": CHANGE_WORKLOADS.group, "resource": "changeworkloads/status", "verb": "patch"}
READER = {"group": "apps", "resource": "deployments", "verb": "list"}


@dataclass
class World:
    cluster: Cluster
    manager: Manager
    served: Served

    async def user(self, name: str, *rules: dict[str, str], namespace: str = "") -> dict[str, str]:
        """The headers of a user with these permissions: in all namespaces, or in one."""
        role = {
            "metadata": {"name": name},
            "rules": [
                {"apiGroups": [each["group"]], "resources": [each["resource"]], "verbs": [each["verb"]]}
                | ({"resourceNames": [each["name"]]} if "name" in each else {})
                for each in rules
            ],
        }
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": CLUSTER_ROLES.group, "kind": "User", "name": name}],
        }
        await self.cluster.admin.create(CLUSTER_ROLES, role)
        await self.cluster.admin.create(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, binding, namespace)
        return bearer(self.cluster._api.add_token(name))

    async def list(self, headers: dict[str, str], query: str = "") -> tuple[int, Object]:
        return await self.served.request("GET", SUSPEND + query, headers=headers)

    async def roll_back(self, headers: dict[str, str], **body: Any) -> tuple[int, Object]:
        body = {"namespace": "shop", "name": "sleep"} | body
        return await self.served.request("PUT", ROLLBACK, headers=headers, json=body)

    async def filled(self) -> None:
        await self.cluster.until(
            lambda: _true(all(each.synced for each in self.manager.caches.required)), "the caches to be filled"
        )


async def _true(value: bool) -> bool:
    return value


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A reconciler with the permissions of production and its callback port, and the governed namespace `shop`."""
    async with running_cluster(tmp_path) as cluster:
        rules = {"rules": [*rbac.CLUSTER_RULES, *rbac.CALLBACK_RULES]}
        await cluster.admin.patch(CLUSTER_ROLES, rules, rbac.NAME)
        await cluster.go_to("shop")
        async with cluster.reconciler() as manager, serving(manager.caches, manager._client) as served:
            world = World(cluster, manager, served)
            await world.filled()
            yield world


async def two_versions(world: World) -> None:
    """v2 is released after v1 passed, and passes, too."""
    cluster = world.cluster
    await cluster.release(version("v1"))
    await cluster.until_states(v1="Success")
    await cluster.release(version("v2"), image="busybox:2")
    await cluster.until_states(v2="Success")  # the ChangeWorkload of v1 is deleted then


async def suspend(world: World, name: str, since: str = "1683791175") -> None:
    """A Deployment in the namespace that the cluster is at. It is suspended unless `since` is empty."""
    own = {labels.VERSION: version("v1"), **({labels.SUSPEND: since} if since else {})}
    manifest = {
        "metadata": {"name": name, "labels": own},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }
    await world.cluster.admin.create(DEPLOYMENTS, manifest, world.cluster.namespace)
    caches = world.manager.caches.workloads[DEPLOYMENTS.group_kind]
    await world.cluster.until(
        lambda: _true(caches.get(world.cluster.namespace, name) is not None), "the Deployment to be cached"
    )


async def test_suspended_workloads_of_a_namespace_are_listed_for_its_readers(world: World) -> None:
    await suspend(world, "web")
    await suspend(world, "api", since="long-ago")
    await suspend(world, "healthy", since="")
    await world.cluster.go_to("other")
    await suspend(world, "web")
    jane = await world.user("jane", READER, namespace="shop")
    code, answer = await world.list(jane, "?namespace=shop")
    assert (code, answer["success"], answer["resultCode"], answer["msg"]) == (200, True, "000", None)
    assert [(each["namespace"], each["name"], each["since"]) for each in answer["domain"]] == [
        ("shop", "api", None), ("shop", "web", 1683791175),
    ]  # fmt: skip
    for query in ("?namespace=other", "?namespace=", "", "?namespace=none", "?namespace=shop&namespace=other"):
        code, answer = await world.list(jane, query)
        assert (code in (400, 403), answer["success"], answer["domain"]) == (True, False, None)
    everywhere = await world.user("joe", READER)
    for query in ("", "?namespace="):
        found = (await world.list(everywhere, query))[1]["domain"]
        assert [(each["namespace"], each["name"]) for each in found] == [
            ("other", "web"), ("shop", "api"), ("shop", "web"),
        ]  # fmt: skip


async def test_callers_without_a_valid_token_get_401(world: World) -> None:
    await suspend(world, "web")
    wrong: list[dict[str, str]] = [
        {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Bearer a b"},
        {"Authorization": "Basic YTpi"}, bearer("wrong"), bearer("eyJhbGciOiJub25lIn0.e30."), bearer("ä"),
    ]  # fmt: skip
    for headers in wrong:
        for answer in (await world.list(headers, "?namespace=shop"), await world.roll_back(headers)):
            assert (answer[0], answer[1]["resultCode"], answer[1]["domain"]) == (401, "102", None)
            assert "shop" not in answer[1]["msg"]
    async with world.served.client.get(world.served.url(SUSPEND)) as response:
        assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_rollback_needs_both_permissions_in_the_namespace(world: World) -> None:
    await two_versions(world)
    before = await world.cluster.all(CHANGE_WORKLOADS)
    for number, rules in enumerate(([], [WRITER], [STATUS], [READER], [STATUS, WRITER | {"name": "other"}])):
        code, answer = await world.roll_back(await world.user(f"user-{number}", *rules))
        assert (code, answer["success"]) == (403, False)
        assert f"user-{number} may not patch " in answer["msg"]
    elsewhere = await world.user("elsewhere", STATUS, WRITER, namespace="default")
    assert (await world.roll_back(elsewhere))[0] == 403
    assert (await world.roll_back(elsewhere, name="unknown"))[0] == 403
    assert await world.cluster.all(CHANGE_WORKLOADS) == before


async def test_rollback_is_requested_done_and_the_same_when_sent_again(world: World) -> None:
    await two_versions(world)
    jane = await world.user("jane", WRITER | {"name": "sleep"}, STATUS, namespace="shop")
    answers = await asyncio.gather(*(world.roll_back(jane) for _ in range(5)))
    assert {code for code, _ in answers} == {200}, [a[1]["msg"] for a in answers]
    assert answers[0][1]["domain"]["version"] == version("v2")
    assert answers[0][1]["domain"]["changeWorkload"] == f"sleep--x--{version('v2')}"
    await world.cluster.until_rolled_back()
    code, answer = await world.roll_back(jane)
    assert (code, answer["domain"]["version"]) == (200, version("v1"))
    assert answer["domain"]["message"].startswith(f"version {version('v2')} was rolled back to the current version")
    assert await world.cluster.states() == {version("v1"): "Success", version("v2"): "Failed"}


async def test_rollback_to_a_named_target_ends_there_however_often_it_is_requested(world: World) -> None:
    await two_versions(world)
    jane = await world.user("jane", WRITER, STATUS)
    assert (await world.roll_back(jane, version=version("v2")))[1]["domain"]["message"] == "this is the current version"
    (current,) = await world.cluster.all(CHANGE_WORKLOADS)
    target = current["status"]["previous"]["name"]  # a ReplicaSet
    code, answer = await world.roll_back(jane, version=target)
    assert (code, answer["domain"]["rollbackTo"]) == (200, target)

    async def ended() -> bool:
        states = await world.cluster.states()
        return states.pop(version("v2")) == "Failed" and list(states.values()) == ["Success"]

    await world.cluster.until(ended, "the rollback")
    code, answer = await world.roll_back(jane, version=target)
    assert (code, answer["domain"]["message"]) == (200, "this is the current version")


async def test_rollback_to_a_version_that_only_the_history_holds(world: World) -> None:
    await two_versions(world)
    cluster = world.cluster
    await cluster.admin.patch(DEPLOYMENTS, {"spec": {"revisionHistoryLimit": 0}}, "sleep", "shop")

    async def gone() -> bool:
        return len(await cluster.all(REPLICA_SETS)) == 1

    await cluster.until(gone, "the ReplicaSet of the first version to be deleted")
    code, answer = await world.roll_back(await world.user("jane", WRITER, STATUS), version=version("v1"))
    assert (code, answer["domain"]["rollbackTo"]) == (200, version("v1"))

    async def ended() -> bool:
        states = await cluster.states()
        return states.pop(version("v2")) == "Failed" and list(states.values()) == ["Success"]

    await cluster.until(ended, "the rollback")
    assert (await cluster.deployment())["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox"


async def test_another_rollback_in_progress_is_a_conflict(world: World) -> None:
    await two_versions(world)
    jane = await world.user("jane", WRITER, STATUS)

    async def refuse(request: Any, go_on: Any) -> Any:
        """The rollback stays in progress."""
        if request.method == "PATCH" and request.path.endswith("/deployments/sleep"):
            raise ConnectionResetError
        return await go_on()

    world.cluster.set_fault(refuse)
    assert (await world.roll_back(jane))[0] == 200

    async def started() -> bool:
        return (await world.cluster.states())[version("v2")] == "Rollback"

    await world.cluster.until(started, "the rollback")
    assert (await world.roll_back(jane))[1]["success"]
    assert (await world.roll_back(jane, version="sleep-1"))[0] == 409


async def test_rollback_of_what_cannot_be_rolled_back_says_why(world: World) -> None:
    jane = await world.user("jane", WRITER, STATUS)
    for body, code in (
        ({"name": "none"}, 404),
        ({"namespace": "default"}, 404),  # not governed
    ):
        answer = await world.roll_back(jane, **body)
        assert (answer[0], answer[1]["success"]) == (code, False)


MALFORMED = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"x",
    b"\xff",
    b"[" * 8_000 + b"]" * 8_000,
    b'{"namespace":"shop"}',
    b'{"namespace":"shop","name":5}',
    b'{"namespace":"../x","name":"web"}',
    b'{"namespace":"shop","name":"a/b"}',
    b'{"namespace":"shop","name":"web\\n"}',
    b'{"namespace":"","name":"web"}',
    b'{"namespace":"shop","name":"web","version":{}}',
    b'{"namespace":"shop","name":"web","version":"a\\u0000"}',
)


async def test_malformed_rollback_requests_are_refused(world: World) -> None:
    jane = await world.user("jane", WRITER, STATUS)
    for data in MALFORMED:
        code, answer = await world.served.request("PUT", ROLLBACK, headers=jane, data=data)
        assert (code, answer["resultCode"]) == (400, "101"), data[:50]


async def test_too_large_rollback_request_is_refused(world: World) -> None:
    jane = await world.user("jane", WRITER, STATUS)
    code, _ = await world.served.request("PUT", ROLLBACK, headers=jane, data=b" " * 20_000)
    assert code == 413


async def test_methods_and_kinds(world: World) -> None:
    jane = await world.user("jane", READER)
    for method, path in (("POST", SUSPEND), ("DELETE", ROLLBACK), ("GET", ROLLBACK), ("PUT", SUSPEND)):
        assert (await world.served.request(method, path, headers=jane))[0] == 405
    assert (await world.list(jane))[0] == 200
    code, _ = await world.served.request("GET", SUSPEND.replace("deployment", "statefulset"), headers=jane)
    assert code == 403
    code, _ = await world.served.request("GET", SUSPEND.replace("deployment", "pod"), headers=jane)
    assert code == 404


async def test_requests_are_refused_while_the_api_server_gives_no_review(world: World) -> None:
    jane = await world.user("jane", READER, WRITER, STATUS)

    for path in ("/tokenreviews", "/subjectaccessreviews"):

        async def refuse(request: Any, go_on: Any, ending: str = path) -> Any:
            if request.path.endswith(ending):
                raise ConnectionResetError
            return await go_on()

        world.cluster.set_fault(refuse)
        for answer in (await world.list(jane), await world.roll_back(jane)):
            assert (answer[0], answer[1]["success"], answer[1]["domain"]) == (503, False, None)


async def test_revoked_permission_has_no_effect_any_more(world: World) -> None:
    jane = await world.user("jane", READER)
    assert (await world.list(jane))[0] == 200
    await world.cluster.admin.delete(CLUSTER_ROLE_BINDINGS, "jane")
    assert (await world.list(jane))[0] == 403


async def test_permissions_of_a_service_account_by_its_group_count(world: World) -> None:
    admin = world.cluster.admin
    await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, "shop")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made: Object = await admin.create(SERVICE_ACCOUNTS, request, "shop", name="robot", subresource="token")
    robot = bearer(made["status"]["token"])
    assert (await world.list(robot, "?namespace=shop"))[0] == 403
    await world.user("reader", READER)
    group = {"apiGroup": CLUSTER_ROLES.group, "kind": "Group", "name": "system:serviceaccounts:shop"}
    reference = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": "reader"}
    binding = {"metadata": {"name": "robots"}, "roleRef": reference, "subjects": [group]}
    await admin.create(ROLE_BINDINGS, binding, "shop")
    assert (await world.list(robot, "?namespace=shop"))[0] == 200
    assert (await world.list(robot))[0] == 403
    other = {**request, "spec": {"audiences": ["another"]}}
    made = await admin.create(SERVICE_ACCOUNTS, other, "shop", name="robot", subresource="token")
    assert (await world.list(bearer(made["status"]["token"]), "?namespace=shop"))[0] == 401


async def test_list_is_refused_until_the_caches_are_filled(world: World) -> None:
    jane = await world.user("jane", READER, WRITER, STATUS)
    async with serving(client=world.manager._client) as empty:
        code, answer = await empty.request("GET", SUSPEND, headers=jane)
        assert (code, answer["success"], answer["domain"]) == (503, False, None)
        body = {"namespace": "shop", "name": "sleep"}
        assert (await empty.request("PUT", ROLLBACK, headers=jane, json=body))[0] == 503
