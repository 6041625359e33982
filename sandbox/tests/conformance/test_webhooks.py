"""Admission webhooks: the order of calls, the reviews, and the effect of answers."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from conformance.manifests import Json, config_map, text
from kube_base.access.client import Client
from kube_base.access.errors import ApiError
from kube_base.resources import CONFIG_MAPS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from support import hook as hooks
from support.hook import Hook
from support.kubectl import Kubectl
from support.polling import until

Configure = Callable[..., Awaitable[None]]


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Hook]:
    async with hooks.serve(tmp_path) as hook:
        yield hook


@pytest.fixture
async def configure(client: Client, space: Kubectl, hook: Hook) -> AsyncIterator[Configure]:
    """Registers webhooks for the ConfigMaps of the namespace, and waits until the API server calls them."""
    made: list[tuple[Resource, str]] = []

    async def configure(resource: Resource, *webhooks: Json) -> None:
        name = f"e2e-{uuid.uuid4().hex[:8]}"
        defaults = {
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "clientConfig": hook.client_config,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
            ],
        }  # fmt: skip
        body = {"metadata": {"name": name}, "webhooks": [{**defaults, **webhook} for webhook in webhooks]}
        await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **body})
        made.append((resource, name))
        probe = config_map("probe", labels={"probe": "yes"})
        path = CONFIG_MAPS.path(space.namespace)

        async def called() -> bool:
            with contextlib.suppress(ApiError):
                await client.request("POST", path, body=probe, query={"dryRun": "All"})
            return bool(hook.reviews)

        await until(called, "the API server to read the configuration")
        hook.reviews.clear()

    yield configure
    for resource, name in made:
        await client.delete(resource, name)


async def create(client: Client, space: Kubectl, name: str, **metadata: Any) -> Json:
    return await client.create(CONFIG_MAPS, config_map(name, **metadata), space.namespace)


async def kubectl(space: Kubectl, *arguments: str, stdin: str | None = None) -> tuple[int, str]:
    """Run kubectl in a thread, so that the webhook can answer; returns exit code and stderr."""
    done = await asyncio.to_thread(space.run, *arguments, stdin=stdin)
    return done.returncode, done.stderr


async def test_reviews_of_create_update_and_delete_carry_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    await configure(VALIDATING_WEBHOOKS, {"name": "tell.example.com"})
    await create(client, space, "told")
    await client.patch(CONFIG_MAPS, {"data": {"a": "2"}}, "told", space.namespace)
    await client.delete(CONFIG_MAPS, "told", space.namespace)
    created, updated, deleted = (review["request"] for review in hook.reviews)
    assert [one["operation"] for one in (created, updated, deleted)] == ["CREATE", "UPDATE", "DELETE"]
    assert created["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert created["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (created["name"], created["namespace"], created["dryRun"]) == ("told", space.namespace, False)
    assert created["oldObject"] is None
    assert created["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert updated["object"]["data"] == {"a": "2"}
    assert updated["oldObject"]["data"] == {"a": "1"}
    assert updated["options"]["kind"] == "UpdateOptions"
    assert deleted["object"] is None
    assert deleted["oldObject"]["metadata"]["name"] == "told"
    assert created["userInfo"]["username"]
    assert len({one["uid"] for one in (created, updated, deleted)}) == 3


async def test_review_of_an_item_of_a_collection_delete_has_no_name(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    await configure(VALIDATING_WEBHOOKS, {"name": "collection.example.com"})
    await create(client, space, "one", labels={"collection": "yes"})
    await create(client, space, "two", labels={"collection": "yes"})
    hook.reviews.clear()
    path = CONFIG_MAPS.path(space.namespace)
    await client.request("DELETE", path, query={"labelSelector": "collection=yes"})
    requests = [review["request"] for review in hook.reviews]
    assert {asked["oldObject"]["metadata"]["name"] for asked in requests} == {"one", "two"}
    assert [(asked.get("name", ""), asked["namespace"]) for asked in requests] == [("", space.namespace)] * 2


async def test_mutating_webhooks_run_in_order_and_before_validating_ones(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    seen: list[Any] = []

    async def respond(request: web.Request, review: Json) -> web.StreamResponse:
        seen.append((request.path, review["request"]["object"]["data"]))
        key = request.path.rpartition("/")[2]
        patch = hooks.patching({"op": "add", "path": f"/data/{key}", "value": "1"})
        return await (hooks.allow if key == "last" else patch)(request, review)

    hook.respond = respond

    def at(path: str) -> Json:
        return {"clientConfig": {**hook.client_config, "url": f"https://127.0.0.1:{hook.port}/{path}"}}

    await configure(VALIDATING_WEBHOOKS, {"name": "last.example.com", **at("last")})
    await configure(
        MUTATING_WEBHOOKS, {"name": "one.example.com", **at("one")}, {"name": "two.example.com", **at("two")}
    )
    # The API server may read the second configuration later than the first.
    async with asyncio.timeout(30):
        while set((await create_dry(client, space))["data"]) != {"a", "one", "two"}:
            pass
    seen.clear()
    created = await create(client, space, "patched")
    assert created["data"] == {"a": "1", "one": "1", "two": "1"}
    assert seen == [
        ("/one", {"a": "1"}), ("/two", {"a": "1", "one": "1"}), ("/last", {"a": "1", "one": "1", "two": "1"}),
    ]  # fmt: skip


async def create_dry(client: Client, space: Kubectl) -> Json:
    body = config_map("dry")
    data = await client.request("POST", CONFIG_MAPS.path(space.namespace), body=body, query={"dryRun": "All"})
    answer: Json = json.loads(data)
    return answer


@pytest.mark.parametrize(
    ("response", "code", "message"),
    [
        ({"allowed": False}, 400, 'admission webhook "deny.example.com" denied the request without explanation'),
        (
            {"allowed": False, "status": {"message": "not today"}},
            400,
            'admission webhook "deny.example.com" denied the request: not today',
        ),
        (
            {"allowed": False, "status": {"reason": "because"}},
            400,
            'admission webhook "deny.example.com" denied the request: because',
        ),
        (
            {"allowed": False, "status": {"code": 409, "reason": "Conflict", "message": "taken"}},
            409,
            'admission webhook "deny.example.com" denied the request: taken',
        ),
    ],
)
async def test_denial_reads_as_by_kube_apiserver(
    client: Client, space: Kubectl, hook: Hook, configure: Configure, response: Json, code: int, message: str
) -> None:
    hook.respond = hooks.answering(**response)
    await configure(VALIDATING_WEBHOOKS, {"name": "deny.example.com"})
    with pytest.raises(ApiError) as caught:
        await create(client, space, "denied")
    assert (caught.value.code, str(caught.value)) == (code, message)


async def test_kubectl_shows_reason_message_and_warnings_of_a_denial(
    space: Kubectl, hook: Hook, configure: Configure
) -> None:
    hook.respond = hooks.answering(
        allowed=False, status={"code": 403, "reason": "the reason", "message": "the message"}, warnings=["mind", "this"]
    )
    await configure(VALIDATING_WEBHOOKS, {"name": "deny.example.com"})
    code, stderr = await kubectl(space, "create", "-f", "-", stdin=text(config_map("warned")))
    assert code == 1
    assert stderr.splitlines()[:2] == ["Warning: mind", "Warning: this"]
    assert stderr.splitlines()[-1] == (
        'Error from server (the reason): error when creating "STDIN": admission webhook "deny.example.com" denied the'
        " request: the message"
    )


@pytest.mark.parametrize(
    ("respond", "why"),
    [
        (hooks.saying(500), "an error on the server (\"\") has prevented the request from succeeding"),
        (hooks.saying(body=b"nonsense", content_type="application/json"), "json parse error"),
        (hooks.answering(uid="other"), 'expected response.uid='),
    ],
)  # fmt: skip
async def test_unusable_answer_with_failure_policy_fail_refuses_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure, respond: Any, why: str
) -> None:
    hook.respond = respond
    await configure(VALIDATING_WEBHOOKS, {"name": "fail.example.com", "failurePolicy": "Fail"})
    with pytest.raises(ApiError) as caught:
        await create(client, space, "unlucky")
    assert caught.value.code == 500
    assert str(caught.value).startswith('Internal error occurred: failed calling webhook "fail.example.com": ')
    assert why in str(caught.value)


async def test_unusable_answer_with_failure_policy_ignore_admits_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    hook.respond = hooks.saying(500)
    await configure(VALIDATING_WEBHOOKS, {"name": "fail.example.com", "failurePolicy": "Ignore"})
    assert await create(client, space, "lucky")
    assert hook.reviews


async def test_webhook_that_exceeds_its_timeout_refuses_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    released = asyncio.Event()

    async def respond(request: web.Request, review: Json) -> web.StreamResponse:
        await released.wait()
        return await hooks.allow(request, review)

    await configure(VALIDATING_WEBHOOKS, {"name": "slow.example.com", "timeoutSeconds": 1})
    hook.respond = respond
    with pytest.raises(ApiError) as caught:
        await create(client, space, "late")
    released.set()
    assert caught.value.code == 500
    assert str(caught.value) == (
        'Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post'
        f' "https://127.0.0.1:{hook.port}/path?timeout=1s": context deadline exceeded'
    )


async def test_unreachable_webhook_refuses_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    closed = {**hook.client_config, "url": "https://127.0.0.1:1/path"}
    objects = {"objectSelector": {"matchLabels": {"nobody": "home"}}}
    await configure(
        VALIDATING_WEBHOOKS, {"name": "up.example.com"}, {"name": "down.example.com", "clientConfig": closed, **objects}
    )
    with pytest.raises(ApiError, match="connect: connection refused") as caught:
        await create(client, space, "unheard", labels={"nobody": "home"})
    assert 'failed calling webhook "down.example.com": failed to call webhook: Post' in str(caught.value)


async def test_webhook_with_a_certificate_for_another_host_refuses_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    objects = {"objectSelector": {"matchLabels": {"who": "else"}}}
    other = {"url": f"https://localhost:{hook.port}/path", "caBundle": hook.bundle}
    await configure(
        VALIDATING_WEBHOOKS, {"name": "good.example.com"}, {"name": "bad.example.com", "clientConfig": other, **objects}
    )
    with pytest.raises(ApiError, match="tls: failed to verify certificate: x509: certificate is"):
        await create(client, space, "unsafe", labels={"who": "else"})


async def test_rules_selectors_and_conditions_choose_the_webhooks(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    await configure(
        VALIDATING_WEBHOOKS,
        {"name": "all.example.com"},
        {"name": "labelled.example.com", "objectSelector": {"matchLabels": {"choose": "me"}}},
        {"name": "nowhere.example.com", "namespaceSelector": {"matchLabels": {"not": "there"}}},
        {
            "name": "condition.example.com",
            "matchConditions": [{"name": "long", "expression": "object != null && object.data.a.size() > 3"}],
        },
        {
            "name": "others.example.com",
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
        },
        {
            "name": "deletions.example.com",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["*"]}],
        },
    )
    await create(client, space, "none")
    assert len(hook.reviews) == 1
    hook.reviews.clear()
    await create(client, space, "one", labels={"choose": "me"})
    assert len(hook.reviews) == 2
    hook.reviews.clear()
    await client.patch(CONFIG_MAPS, {"metadata": {"labels": None}}, "one", space.namespace)
    assert len(hook.reviews) == 2  # the object selector matches the old object too
    hook.reviews.clear()
    await client.patch(CONFIG_MAPS, {"data": {"a": "long enough"}}, "none", space.namespace)
    assert len(hook.reviews) == 2


async def test_dry_run_calls_webhooks_with_dry_run_true(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    await configure(VALIDATING_WEBHOOKS, {"name": "dry.example.com"})
    await create_dry(client, space)
    assert [review["request"]["dryRun"] for review in hook.reviews] == [True]
    assert hook.reviews[0]["request"]["options"]["dryRun"] == ["All"]


async def test_patched_object_is_validated_and_a_failed_patch_test_refuses_the_request(
    client: Client, space: Kubectl, hook: Hook, configure: Configure
) -> None:
    hook.respond = hooks.patching({"op": "add", "path": "/data/bad key", "value": "1"})
    await configure(MUTATING_WEBHOOKS, {"name": "patch.example.com"})
    with pytest.raises(ApiError, match="data\\[bad key\\]: Invalid value") as caught:
        await create(client, space, "mangled")
    assert caught.value.code == 422
    hook.respond = hooks.patching({"op": "test", "path": "/data/a", "value": "9"})
    with pytest.raises(ApiError) as caught:
        await create(client, space, "mangled")
    assert caught.value.code == 500


async def test_invalid_webhook_configuration_is_refused(client: Client) -> None:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "wrong"},
        "webhooks": [{"name": "short", "clientConfig": {}, "admissionReviewVersions": ["v9"], "sideEffects": "Some"}],
    }
    with pytest.raises(ApiError) as caught:
        await client.create(VALIDATING_WEBHOOKS, body)
    for part in (
        "webhooks[0].name: Invalid value",
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        "webhooks[0].admissionReviewVersions: Invalid value",
        'webhooks[0].sideEffects: Unsupported value: "Some"',
    ):
        assert part in str(caught.value)
