"""What `altershield protected` says about an object, and about kinds that it cannot list."""

from typing import Any

import pytest

from altershield.api.deletion_protection import CASCADING_LABEL, LABEL, Level
from altershield.api.protected_kinds import PROTECTED_KINDS, ProtectedKind
from altershield.views.protection import Deletion, find, judged
from kube_base.resources import DEPLOYMENTS, JOBS, NAMESPACES
from tests.support.stub_api import answer, serving


def kind(plural: str) -> ProtectedKind:
    return next(each for each in PROTECTED_KINDS if each.plural == plural)


def obj(labels: dict[str, str], *, terminating: bool = False, **fields: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "web", "namespace": "shop", "uid": "1", "labels": labels}
    return {"metadata": metadata | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}), **fields}


ALWAYS, CASCADING = {LABEL: "Always"}, {LABEL: "Cascading"}


@pytest.mark.parametrize(
    ("plural", "found", "level", "deletion", "because"),
    [
        ("deployments.apps", obj(ALWAYS, spec={"replicas": 0}), Level.ALWAYS, Deletion.REFUSED, ""),
        ("deployments.apps", obj(CASCADING, spec={"replicas": 3}), Level.CASCADING, Deletion.REFUSED, "replicas 3"),
        ("deployments.apps", obj(CASCADING, spec={"replicas": 0}), Level.CASCADING, Deletion.ALLOWED, "replicas 0"),
        ("deployments.apps", obj({LABEL: "always"}, spec={"replicas": 3}), None, Deletion.ALLOWED, ""),
        ("deployments.apps", obj(ALWAYS, terminating=True), Level.ALWAYS, Deletion.BEGUN, ""),
        ("uniteddeployments.apps.kruise.io", obj(CASCADING, spec={}, status={"replicas": 2}), Level.CASCADING,
         Deletion.REFUSED, "replicas 2"),
        ("jobs.batch", obj({CASCADING_LABEL: "true"}), Level.CASCADING, Deletion.ALLOWED, "active pods 0"),
        ("namespaces", obj(CASCADING), Level.CASCADING, Deletion.ASKS, ""),
        ("services", obj(CASCADING), Level.CASCADING, Deletion.ALLOWED, ""),
    ],
)  # fmt: skip
def test_deletion_of_an_object_is_judged_as_the_policies_judge_it(
    plural: str, found: dict[str, Any], level: Level | None, deletion: Deletion, because: str
) -> None:
    item = judged(kind(plural), found)
    assert (item.level, item.deletion, item.because) == (level, deletion, because)


async def test_kind_that_cannot_be_listed_is_a_problem_and_the_others_are_shown() -> None:
    async with serving() as (api, client):
        await api.put(JOBS, obj(ALWAYS))
        await api.put(NAMESPACES, {"metadata": {"name": "shop", "uid": "2"}})
        api.fault(lambda request: "/deployments" in request.path, answer(403, "Forbidden"))
        found = await find(client, "shop")
    assert [each.kind.plural for each in found.items if each.kind.resource in (JOBS, DEPLOYMENTS)] == ["jobs.batch"]
    assert found.problems == ['cannot list deployments.apps in namespace "shop": 403 Forbidden']


FORBIDDEN = 'User "ann" cannot list resource "jobs"'


async def test_user_without_a_role_is_told_once_which_one_to_ask_for() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: True, answer(403, FORBIDDEN), times=99)
        found = await find(client, "shop")
    view, *rest = found.problems
    assert view.startswith(
        "cannot list deployments.apps, replicasets.apps, statefulsets.apps, clonesets.apps.kruise.io, daemonsets.apps, "
    )
    assert view.endswith(f'{FORBIDDEN}; ask for the ClusterRole view in namespace "shop"')
    assert [each.partition(": ")[0] for each in rest] == [
        "cannot list statefulsets.apps.kruise.io, uniteddeployments.apps.kruise.io, daemonsets.apps.kruise.io in "
        'namespace "shop"'
    ]
    assert rest[0].endswith('; ask for a role with the verb list on these kinds in namespace "shop"')


async def test_kind_that_the_cluster_does_not_have_is_no_problem_if_the_user_may_not_list_it() -> None:
    """The API server checks permissions before it looks for the kind."""
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "shop", "uid": "2"}})
        api.fault(lambda request: "/apps.kruise.io/v1beta1/" in request.path, answer(403, FORBIDDEN), times=99)
        api.fault(lambda request: request.path == "/apis/apps.kruise.io/v1beta1", answer(404, "not found"))
        assert (await find(client, "shop")).problems == []
