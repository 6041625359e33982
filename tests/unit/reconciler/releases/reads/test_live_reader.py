"""Reads of the objects that hold the templates of a workload, which can be many and large."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.releases import history
from altershield.workloads.adapter import template_of
from altershield.workloads.workload import Workload, fingerprint_of
from kube_base.access.errors import ConflictError, SchemaError
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS
from reconciler.releases.reads.live import LiveReader
from tests.support import workloads
from tests.support.stub_api import is_list, serving
from tests.support.workloads import BY_NAME, GROUP_KINDS

Object = dict[str, Any]

OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": True}
COUNT = 40
AT_ONCE = 20


def deployment(*values: str) -> Workload:
    """With `values`: its selector excludes these values of a label."""
    made = workloads.manifest("Deployment", "web", "busybox", metadata={"namespace": "shop", "uid": "uid-web"})
    if values:
        made["spec"]["selector"]["matchExpressions"] = [{"key": "app", "operator": "NotIn", "values": list(values)}]
    return BY_NAME["Deployment"].read(msgspec.json.encode(made))


def revision_of_number(number: int, **more: Any) -> Object:
    metadata = {"name": f"web-{number:02}", "namespace": "shop", "uid": f"uid-{number}", "ownerReferences": [OWNER]}
    return {"metadata": {**metadata, **more}}


async def test_revisions_are_read_a_few_at_a_time() -> None:
    """A user who may create ReplicaSets can create hundreds of a megabyte each, with the workload as their owner."""
    async with serving() as (api, client):
        for number in range(COUNT):
            template = workloads.template("web", f"busybox:{number}")
            await api.put(REPLICA_SETS, {**revision_of_number(number), "spec": {"template": template}})
        found = await LiveReader(client).revisions(deployment())
        lists = await api.wait_for_requests(is_list, 1)
        assert {each.source.name for each in found} == {f"web-{number:02}" for number in range(COUNT)}
        assert len(lists) > 1
        assert all(int(each.query["limit"]) <= AT_ONCE for each in lists)


async def test_workload_of_another_schema_is_a_failure_that_a_retry_cannot_end() -> None:
    async with serving() as (api, client):
        await api.put(
            DEPLOYMENTS,
            {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": "two"}},
        )
        for read in (LiveReader(client).workload, LiveReader(client).raw):
            with pytest.raises(SchemaError, match="deployments") as found:
                await read(deployment())
            assert not found.value.may_heal


async def test_selector_that_is_too_long_for_a_url_is_not_sent() -> None:
    """The API server refuses such a URL, so the release would never be verified."""
    async with serving() as (api, client):
        for number, owner in enumerate((OWNER, {**OWNER, "uid": "another"})):
            template = workloads.template("web", f"busybox:{number}")
            made = {**revision_of_number(number, ownerReferences=[owner]), "spec": {"template": template}}
            await api.put(REPLICA_SETS, made)
        found = await LiveReader(client).revisions(deployment(*[f"value-{number}" for number in range(30_000)]))
        assert [each.source.name for each in found] == ["web-00"]


async def test_history_is_listed_without_the_templates() -> None:
    template = workloads.template("web", "busybox")
    version = fingerprint_of(template_of(template))
    async with serving() as (api, client):
        for number in range(COUNT):
            own = {labels.HISTORY: "web"}
            data = {"version": version, "spec": {"template": template}}
            await api.put(history.RESOURCE, {**revision_of_number(number, labels=own), "data": data, "revision": 1})
        found = await LiveReader(client).history(deployment())
        lists = await api.wait_for_requests(is_list, 1)
        assert len(found) == COUNT
        assert {(each.fingerprint, str(each.template)) for each in found} == {(version, "{}")}
        assert all(int(each.query["limit"]) <= AT_ONCE for each in lists)


async def test_revision_of_somebody_else_with_the_label_of_the_history_is_left_out() -> None:
    async with serving() as (api, client):
        name = history.entry_name(GROUP_KINDS["Deployment"], "web", "a" * 8)
        for number, data in enumerate(({"version": 7}, None, "x")):
            made = {**revision_of_number(number, labels={labels.HISTORY: "web"}), "data": data, "revision": 1}
            await api.put(history.RESOURCE, made)
        metadata = {**revision_of_number(0)["metadata"], "name": name}
        await api.put(history.RESOURCE, {"metadata": metadata, "data": {"version": 7}, "revision": 1})
        assert await LiveReader(client).history(deployment()) == []
        with pytest.raises(ConflictError):
            await LiveReader(client).entry(deployment(), name)
