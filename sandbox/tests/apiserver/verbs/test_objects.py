"""Requests that create, read, update, patch and delete objects. All messages were compared with kube-apiserver."""

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from support.hook import serve
from support.manifests import CONFIG_MAPS, DEPLOYMENTS, PODS, config_map, deployment, pod
from support.requests import APPLY, MERGE, serving


async def test_created_object_gets_uid_timestamp_and_generation() -> None:
    async with serving() as http:
        answer = await http("POST", DEPLOYMENTS, deployment("web"))
        metadata = answer.json["metadata"]
        assert answer.status == 201
        assert (metadata["namespace"], metadata["generation"], answer.json["status"]) == ("default", 1, {})
        assert metadata["uid"]
        assert metadata["creationTimestamp"]
        assert (await http("GET", f"{DEPLOYMENTS}/web")).json == answer.json


async def test_create_with_a_taken_name_already_exists() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        again = await http("POST", CONFIG_MAPS, config_map("a"))
        assert (again.status, again.json["reason"]) == (409, "AlreadyExists")
        assert again.message == 'configmaps "a" already exists'


async def test_generated_name_is_the_prefix_and_five_characters() -> None:
    async with serving() as http:
        body = {"metadata": {"generateName": "job-"}}
        names = {(await http("POST", CONFIG_MAPS, body)).json["metadata"]["name"] for _ in range(5)}
        assert len(names) == 5
        assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_create_in_a_missing_or_other_namespace_is_refused() -> None:
    async with serving() as http:
        missing = await http("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("a"))
        assert (missing.status, missing.message) == (404, 'namespaces "nowhere" not found')
        other = await http("POST", CONFIG_MAPS, config_map("a", namespace="other"))
        assert other.status == 400
        assert other.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_create_in_a_terminating_namespace_is_forbidden() -> None:
    async with serving() as http:
        await http("POST", "/api/v1/namespaces", {"metadata": {"name": "old"}})
        gone = await http("DELETE", "/api/v1/namespaces/old")
        assert gone.json["status"]["phase"] == "Terminating"
        again = await http("DELETE", "/api/v1/namespaces/old")
        assert (again.status, again.json) == (200, gone.json)
        late = await http("POST", "/api/v1/namespaces/old/configmaps", config_map("a"))
        assert (late.status, late.message) == (
            403,
            'configmaps "a" is forbidden: unable to create new content in namespace old because it is being terminated',
        )
        await http("PUT", "/api/v1/namespaces/old/finalize", {"metadata": {"name": "old"}, "spec": {}})
        assert (await http("GET", "/api/v1/namespaces/old")).status == 404


async def test_delete_of_a_default_namespace_is_forbidden() -> None:
    async with serving() as http:
        answer = await http("DELETE", "/api/v1/namespaces/default")
        assert (answer.status, answer.message) == (
            403,
            'namespaces "default" is forbidden: this namespace may not be deleted',
        )


async def test_update_of_an_old_version_is_a_conflict() -> None:
    async with serving() as http:
        first = (await http("POST", CONFIG_MAPS, config_map("a"))).json
        await http("PATCH", f"{CONFIG_MAPS}/a", {"data": {"key": "other"}}, type_=MERGE)
        late = await http("PUT", f"{CONFIG_MAPS}/a", first)
        assert (late.status, late.message) == (
            409,
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again",
        )


async def test_update_without_a_version_is_accepted() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        answer = await http("PUT", f"{CONFIG_MAPS}/a", {**config_map("a"), "data": {"key": "new"}})
        assert (answer.status, answer.json["data"]) == (200, {"key": "new"})


async def test_update_of_a_lease_without_a_version_is_refused() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    async with serving() as http:
        await http("PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
        answer = await http("PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}})
        assert answer.status == 422
        assert answer.message.endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")


async def test_patch_without_effect_keeps_the_version() -> None:
    async with serving() as http:
        version = (await http("POST", CONFIG_MAPS, config_map("a"))).json["metadata"]["resourceVersion"]
        for _ in range(2):
            answer = await http("PATCH", f"{CONFIG_MAPS}/a", {"data": {"key": "value"}}, type_=MERGE)
            assert answer.json["metadata"]["resourceVersion"] == version


async def test_generation_grows_with_changes_of_the_spec_only() -> None:
    async with serving() as http:
        await http("POST", DEPLOYMENTS, deployment("web"))
        path = f"{DEPLOYMENTS}/web"

        async def generation(patch: dict[str, Any], where: str = "") -> int:
            answer = await http("PATCH", path + where, patch, type_=MERGE)
            return int(answer.json["metadata"]["generation"])

        assert await generation({"metadata": {"labels": {"a": "b"}}}) == 1
        assert await generation({"spec": {"replicas": 2}}) == 2
        assert (
            await generation({"metadata": {"annotations": {"a": "b"}}}) == 3
        )  # annotations count for Deployments only
        assert await generation({"status": {"replicas": 1}}, "/status") == 3


async def test_status_endpoint_writes_the_status_only_and_the_main_one_all_else() -> None:
    async with serving() as http:
        await http("POST", DEPLOYMENTS, deployment("web"))
        both = {"spec": {"replicas": 7}, "status": {"replicas": 5}}
        main = (await http("PATCH", f"{DEPLOYMENTS}/web", both, type_=MERGE)).json
        assert (main["spec"]["replicas"], main["status"]) == (7, {})
        both["spec"]["replicas"] = 9
        status = (await http("PATCH", f"{DEPLOYMENTS}/web/status", both, type_=MERGE)).json
        assert (status["spec"]["replicas"], status["status"]["replicas"]) == (7, 5)


async def test_scale_endpoint_reads_and_sets_the_replicas() -> None:
    async with serving() as http:
        await http("POST", DEPLOYMENTS, deployment("web"))
        scale = (await http("GET", f"{DEPLOYMENTS}/web/scale")).json
        assert (scale["kind"], scale["spec"], scale["status"]) == (
            "Scale",
            {"replicas": 1},
            {"replicas": 0, "selector": "app=web"},
        )
        await http("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 4}}, type_=MERGE)
        assert (await http("GET", f"{DEPLOYMENTS}/web")).json["spec"]["replicas"] == 4


async def test_concurrent_patches_of_one_object_are_all_applied() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        patches = [http("PATCH", f"{CONFIG_MAPS}/a", {"data": {f"key{n}": "x"}}, type_=MERGE) for n in range(20)]
        assert {answer.status for answer in await asyncio.gather(*patches)} == {200}
        assert len((await http("GET", f"{CONFIG_MAPS}/a")).json["data"]) == 21


async def test_unknown_field_is_dropped_warned_of_or_refused_as_field_validation_says() -> None:
    async with serving() as http:
        odd = {**config_map("a"), "foo": 1}
        assert (await http("POST", f"{CONFIG_MAPS}?dryRun=All", odd)).headers[
            "Warning"
        ] == '299 - "unknown field \\"foo\\""'
        assert "Warning" not in (await http("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Ignore", odd)).headers
        strict = await http("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", odd)
        assert (strict.status, strict.message) == (
            400,
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo"',
        )


async def test_dry_run_changes_nothing_in_the_store() -> None:
    async with serving() as http:
        assert (await http("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a"))).status == 201
        assert (await http("GET", f"{CONFIG_MAPS}/a")).status == 404
        await http("POST", CONFIG_MAPS, config_map("a"))
        revision = http.api.store.revision
        assert (await http("PATCH", f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"a": "b"}}, type_=MERGE)).json["data"][
            "a"
        ] == "b"
        assert (await http("DELETE", f"{CONFIG_MAPS}/a?dryRun=All")).status == 200
        assert http.api.store.revision == revision


async def test_apply_creates_an_object_and_reports_conflicts() -> None:
    async with serving() as http:
        path = f"{CONFIG_MAPS}/a?fieldManager="
        assert (await http("PATCH", f"{path}one", config_map("a"), type_=APPLY)).status == 201
        other = {**config_map("a"), "data": {"key": "mine"}}
        conflict = await http("PATCH", f"{path}two", other, type_=APPLY)
        assert (conflict.status, conflict.message) == (
            409,
            'Apply failed with 1 conflict: conflict with "one": .data.key',
        )
        assert (await http("PATCH", f"{path}two&force=true", other, type_=APPLY)).json["data"] == {"key": "mine"}


async def test_object_with_finalizers_is_removed_after_the_last_finalizer() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a", finalizers=["example.com/hold"]))
        held = (await http("DELETE", f"{CONFIG_MAPS}/a")).json
        assert held["metadata"]["deletionTimestamp"]
        assert (await http("GET", f"{CONFIG_MAPS}/a")).status == 200
        await http("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, type_=MERGE)
        assert (await http("GET", f"{CONFIG_MAPS}/a")).status == 404


async def test_propagation_policy_of_a_delete_becomes_a_finalizer() -> None:
    async with serving() as http:
        for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
            await http("POST", DEPLOYMENTS, deployment("web"))
            answer = await http("DELETE", f"{DEPLOYMENTS}/web?propagationPolicy={policy}")
            assert answer.json["metadata"]["finalizers"] == [finalizer]
            await http("PATCH", f"{DEPLOYMENTS}/web", {"metadata": {"finalizers": None}}, type_=MERGE)
        await http("POST", DEPLOYMENTS, deployment("web"))
        assert (await http("DELETE", f"{DEPLOYMENTS}/web?propagationPolicy=Background")).json["status"] == "Success"


async def test_bound_pod_is_deleted_after_its_grace_period_by_a_second_delete() -> None:
    async with serving() as http:
        await http("POST", PODS, pod("p"))
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "node-1"}}
        assert (await http("POST", f"{PODS}/p/binding", binding)).status == 201
        leaving = (await http("DELETE", f"{PODS}/p")).json["metadata"]
        assert leaving["deletionGracePeriodSeconds"] == 30
        assert (await http("DELETE", f"{PODS}/p?gracePeriodSeconds=0")).status == 200
        assert (await http("GET", f"{PODS}/p")).status == 404


async def test_pod_without_a_node_is_deleted_at_once() -> None:
    async with serving() as http:
        await http("POST", PODS, pod("p"))
        assert (await http("DELETE", f"{PODS}/p")).json["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await http("GET", f"{PODS}/p")).status == 404


async def test_delete_with_the_uid_of_another_object_is_a_conflict() -> None:
    async with serving() as http:
        await http("POST", CONFIG_MAPS, config_map("a"))
        answer = await http("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}})
        assert answer.status == 409
        assert "the UID in the precondition (other) does not match the UID in record" in answer.message


async def test_review_of_an_item_of_a_collection_delete_has_no_name(tmp_path: Path) -> None:
    """As in kube-apiserver: the name in the review is that of the request, and a collection delete has none."""
    async with serving() as http, serve(tmp_path) as hook:
        webhook = {
            "name": "h.example.com",
            "clientConfig": hook.client_config,
            "rules": [
                {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        configuration = {"metadata": {"name": "c"}, "webhooks": [webhook]}
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert (await http("POST", path, configuration)).status == 201
        for name in ("a", "b", "c"):
            await http("POST", CONFIG_MAPS, config_map(name))
        assert (await http("DELETE", f"{CONFIG_MAPS}/c")).status == 200
        answer = await http("DELETE", CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a", "b"]
        assert (await http("GET", CONFIG_MAPS)).json["items"] == []
    requests = [review["request"] for review in hook.reviews]
    seen = [(asked.get("name", ""), asked["namespace"], asked["oldObject"]["metadata"]["name"]) for asked in requests]
    assert seen == [("c", "default", "c"), ("", "default", "a"), ("", "default", "b")]


async def test_collection_delete_with_a_selector_deletes_the_selected_objects() -> None:
    async with serving() as http:
        for name in ("a", "b", "c"):
            await http("POST", CONFIG_MAPS, config_map(name, labels={"group": "x" if name != "c" else "y"}))
        answer = await http("DELETE", f"{CONFIG_MAPS}?labelSelector=group%3Dx")
        assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a", "b"]
        left = (await http("GET", CONFIG_MAPS)).json["items"]
        assert [item["metadata"]["name"] for item in left] == ["c"]


async def test_created_pod_gets_service_account_priority_tolerations_and_token_volume() -> None:
    async with serving() as http:
        await http("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        spec = (await http("POST", PODS, pod("p"))).json["spec"]
        assert (spec["serviceAccountName"], spec["priority"]) == ("default", 0)
        assert {toleration["tolerationSeconds"] for toleration in spec["tolerations"]} == {300}
        mount = spec["containers"][0]["volumeMounts"][0]
        assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
        other = pod("q")
        other["spec"]["serviceAccountName"] = "nobody"
        refused = await http("POST", PODS, other)
        assert refused.message == (
            'pods "q" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found'
        )


async def test_pod_security_forbids_the_namespaces_of_the_host() -> None:
    async with serving() as http:
        for level, forbidden in (("privileged", False), ("baseline", True), ("restricted", True)):
            labels = {"pod-security.kubernetes.io/enforce": level}
            await http("POST", "/api/v1/namespaces", {"metadata": {"name": level, "labels": labels}})
            own = pod("p")
            own["metadata"].pop("namespace", None)
            own["spec"]["hostNetwork"] = True
            answer = await http("POST", f"/api/v1/namespaces/{level}/pods", own)
            assert (answer.status == 403) is forbidden, answer
            if forbidden:
                assert f'violates PodSecurity "{level}:latest": host namespaces (hostNetwork=true)' in answer.message


async def test_event_is_served_by_core_and_events_api() -> None:
    core = "/api/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
    }
    async with serving() as http:
        await http("POST", core, event)
        new = (await http("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")).json
        assert (new["apiVersion"], new["note"], new["regarding"]["name"]) == ("events.k8s.io/v1", "it runs", "p")
        found = (await http("GET", f"{core}?fieldSelector=involvedObject.name%3Dp")).json["items"]
        assert len(found) == 1


async def test_malformed_deep_or_large_body_is_refused_with_4xx() -> None:
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    bodies = [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", deep, b"{" + b'"a":1,' * 1000, b'{"metadata":[]}']
    async with serving() as http:
        for body in bodies:
            for type_ in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
                answer = await http("POST", CONFIG_MAPS, body, type_=type_)
                assert 400 <= answer.status < 500, (body[:40], type_, answer)
        assert (await http("POST", CONFIG_MAPS, b"x" * (3 * 1024 * 1024 + 1))).status == 413
        assert (await http("POST", CONFIG_MAPS, b"{}", type_="text/plain")).status == 415
        assert (await http("GET", CONFIG_MAPS)).json["items"] == []


async def test_middleware_may_refuse_requests() -> None:
    @web.middleware
    async def overloaded(request: web.Request, handler: Handler) -> web.StreamResponse:
        return (
            web.json_response({"message": "slow down"}, status=429)
            if request.method == "POST"
            else await handler(request)
        )

    async with serving(middlewares=[overloaded]) as http:
        assert (await http("POST", CONFIG_MAPS, config_map("a"))).status == 429
        assert (await http("GET", CONFIG_MAPS)).status == 200


async def test_request_without_rights_is_forbidden_and_with_a_wrong_token_unauthorized() -> None:
    async with serving() as http:
        token = http.api.add_token("alice")
        answer = await http("GET", CONFIG_MAPS, Authorization=f"Bearer {token}")
        assert (answer.status, answer.message) == (
            403,
            'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" '
            'in the namespace "default"',
        )
        assert (await http("GET", CONFIG_MAPS, Authorization="Bearer wrong")).status == 401
