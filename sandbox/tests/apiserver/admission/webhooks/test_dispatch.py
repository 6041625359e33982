"""Calls of webhooks: reviews, answers, patches, errors and metrics."""

import asyncio
import base64
import datetime
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_sandbox.apiserver.admission.webhooks.dispatch import Webhooks
from kube_sandbox.apiserver.attributes import Attributes, Object, User
from kube_sandbox.apiserver.errors import StatusError
from support import hook as hooks
from support.hook import Hook, answering, patching, review_of, saying
from support.stored import Stored, an_object

NAMESPACE = an_object("Namespace", "apps")
JOE = User("joe", ("dev", "system:authenticated"), "uid-of-joe", {"scopes": ("a",)})


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Hook]:
    async with hooks.serve(tmp_path) as served:
        yield served


@pytest.fixture
def stored() -> Stored:
    return Stored(NAMESPACE)


@pytest.fixture
async def webhooks(stored: Stored) -> AsyncIterator[Webhooks]:
    made = Webhooks(stored, lambda attributes, obj: obj, services=lambda namespace, name, port: ("127.0.0.1", 1))
    yield made
    await made.close()


def configure(stored: Stored, kind: str, *specs: Object, name: str = "configuration") -> None:
    known: Object = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 2,
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "scope": "*"}],
    }
    stored.add(
        an_object(
            f"{kind}WebhookConfiguration",
            name,
            api_version="admissionregistration.k8s.io/v1",
            webhooks=[{"name": f"h{index}.example.com", **known, **spec} for index, spec in enumerate(specs)],
        )
    )


def deployment(**labels: str) -> Object:
    obj = an_object("Deployment", "sleep", "apps", api_version="apps/v1")
    obj["metadata"]["labels"] = labels
    return obj


def create(obj: Object | None = None, **rest: Any) -> Attributes:
    known: Object = {"operation": "CREATE", "obj": obj or deployment()}
    known["options"] = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    known |= {"group": "apps", "version": "v1", "plural": "deployments", "kind": "Deployment"}
    return Attributes(JOE, "create", **(known | {"namespace": "apps", "name": "sleep"} | rest))


async def refused(webhooks: Webhooks, attributes: Attributes, *, mutating: bool = False) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await (webhooks.mutate if mutating else webhooks.validate)(attributes)
    return caught.value


async def test_review_of_an_update_carries_user_objects_options_and_dry_run(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"}
    old, new = deployment(a="old"), deployment(a="new")
    await webhooks.validate(create(new, old=old, operation="UPDATE", options=options, dry_run=True))
    (review,) = hook.reviews
    request = review["request"]
    assert request.pop("uid")
    assert review == {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    resource = {"group": "apps", "version": "v1", "resource": "deployments"}
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert request == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "sleep",
        "namespace": "apps",
        "operation": "UPDATE",
        "userInfo": {
            "username": "joe",
            "uid": "uid-of-joe",
            "groups": ["dev", "system:authenticated"],
            "extra": {"scopes": ["a"]},
        },
        "object": new,
        "oldObject": old,
        "dryRun": True,
        "options": options,
    }
    (sent,) = hook.requests
    assert (sent.method, sent.path, sent.query_string) == ("POST", "/path", "timeout=2s")
    assert sent.headers["User-Agent"] == "kube-apiserver-admission"
    assert sent.headers["Content-Type"] == "application/json"


async def test_review_has_equal_bytes_for_equal_objects(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    old = deployment(a="1", b="2")
    new = deployment(b="2", a="1")
    await webhooks.validate(create(dict(reversed(new.items())), old=old, operation="UPDATE"))
    (review,) = hook.reviews
    assert json.dumps(review["request"]["object"]) == json.dumps(review["request"]["oldObject"])


async def test_review_without_old_object_or_subresource_has_null_or_no_field(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    generated = create(name="")
    await webhooks.validate(generated)
    await webhooks.validate(create(old=deployment(), operation="DELETE", subresource="scale"))
    created, deleted = (review["request"] for review in hook.reviews)
    assert "name" not in created
    assert "subResource" not in created
    assert created["oldObject"] is None
    assert deleted["subResource"] == deleted["requestSubResource"] == "scale"


async def test_denial_message_names_the_webhook_and_carries_its_status_and_warnings(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config, "name": "vdeployment.kb.io"})
    status = {"code": 403, "message": "deployment sleep is suspended", "reason": "deployment sleep is suspended"}
    hook.respond = answering(allowed=False, status=status, warnings=["why", "how"])
    attributes = create()
    error = await refused(webhooks, attributes)
    assert error.status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'admission webhook "vdeployment.kb.io" denied the request: deployment sleep is suspended',
        "reason": "deployment sleep is suspended",
        "code": 403,
    }
    assert attributes.warnings == ["why", "how"]


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (None, 400, 'admission webhook "h0.example.com" denied the request without explanation'),
        ({}, 400, 'admission webhook "h0.example.com" denied the request without explanation'),
        ({"reason": "Because"}, 400, 'admission webhook "h0.example.com" denied the request: Because'),
        ({"message": "no", "code": 200}, 400, 'admission webhook "h0.example.com" denied the request: no'),
        ({"message": "no", "code": 418}, 418, 'admission webhook "h0.example.com" denied the request: no'),
    ],
)
@pytest.mark.parametrize("mutating", [True, False])
async def test_denial_with_a_code_below_400_becomes_400(
    stored: Stored, webhooks: Webhooks, hook: Hook, status: Object | None, code: int, message: str, mutating: bool
) -> None:
    configure(stored, "Mutating" if mutating else "Validating", {"clientConfig": hook.client_config})
    hook.respond = answering(allowed=False, **({} if status is None else {"status": status}))
    error = await refused(webhooks, create(), mutating=mutating)
    assert (error.code, error.message) == (code, message)


async def test_denial_refuses_the_request_with_failure_policy_ignore(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config, "failurePolicy": "Ignore"})
    hook.respond = answering(allowed=False)
    assert (await refused(webhooks, create())).code == 400


def json_answer(text: str, status: int = 200) -> hooks.Respond:
    return saying(status, text=text, content_type="application/json")


CALL = "failed to call webhook: "
FIELD = f"{CALL}json: cannot unmarshal %s into Go struct field AdmissionResponse.response.%s"
REVIEW = '{"apiVersion":"admission.k8s.io/%s","kind":"AdmissionReview"}'
NOT_JSON = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
BAD_ANSWERS = [
    (saying(500, text="boom\n"), f'{CALL}an error on the server ("boom") has prevented the request from succeeding'),
    (json_answer("{}", 500), f'{CALL}an error on the server ("unknown") has prevented the request from succeeding'),
    (saying(404, text="no"), f"{CALL}the server could not find the requested resource"),
    (saying(400, text="no"), f"{CALL}the server rejected our request for an unknown reason"),
    (saying(403, text="nope"), f"{CALL}nope"),
    (
        saying(413, text="no"),
        f"{CALL}the server responded with the status code 413 but did not return more information",
    ),
    (saying(503, text="no"), f"{CALL}the server is currently unable to handle the request"),
    (
        json_answer('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"says no"}', 400),
        f"{CALL}says no",
    ),
    (
        json_answer(""),
        f"{CALL}0-length response with status code: 200 and content type: application/json; charset=utf-8",
    ),
    (saying(text="<html>", content_type="text/html"), f"{CALL}{NOT_JSON}"),
    (
        json_answer('{"apiVersion":"v1","kind":"Pod"}'),
        f'{CALL}no kind "Pod" is registered for version "v1" in scheme "pkg/util/webhook/client.go:71"',
    ),
    (
        json_answer(REVIEW % "v1beta1"),
        f"{CALL}converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    (json_answer(REVIEW % "v1"), "received invalid webhook response: webhook response was absent"),
    (answering(allowed="yes"), FIELD % ("string", "allowed of type bool")),
    (answering(warnings=[1]), FIELD % ("number", "warnings of type string")),
    (answering(patch="!!!"), f"{CALL}illegal base64 data at input byte 0"),
]


@pytest.mark.parametrize(("respond", "reason"), BAD_ANSWERS)
async def test_unusable_answer_with_failure_policy_fail_refuses_the_request(
    stored: Stored, webhooks: Webhooks, hook: Hook, respond: hooks.Respond, reason: str
) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    hook.respond = respond
    error = await refused(webhooks, create())
    why = f'failed calling webhook "h0.example.com": {reason}'
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message == f"Internal error occurred: {why}"
    assert error.details == {"causes": [{"message": why}]}


@pytest.mark.parametrize(("respond", "_reason"), BAD_ANSWERS[:3])
async def test_unusable_answer_with_failure_policy_ignore_admits_the_request(
    stored: Stored, webhooks: Webhooks, hook: Hook, respond: hooks.Respond, _reason: str
) -> None:
    configure(stored, "Mutating", {"clientConfig": hook.client_config, "failurePolicy": "Ignore"})
    hook.respond = respond
    attributes = create()
    await webhooks.mutate(attributes)
    assert attributes.obj == deployment()
    assert (
        'apiserver_admission_webhook_fail_open_count{name="h0.example.com",type="admit"} 1' in webhooks.metrics.text()
    )


async def test_answer_with_another_uid_is_refused(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    hook.respond = answering(uid="other")
    error = await refused(webhooks, create())
    sent = hook.reviews[0]["request"]["uid"]
    assert error.message.endswith(f'received invalid webhook response: expected response.uid="{sent}", got "other"')


async def test_timeout_message_names_the_url_of_the_webhook(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config, "timeoutSeconds": 1})

    let_go = asyncio.Event()

    async def hang(request: web.Request, review: Object) -> web.StreamResponse:
        await let_go.wait()
        return web.Response()

    hook.respond = hang
    error = await refused(webhooks, create())
    let_go.set()
    assert error.message == (
        'Internal error occurred: failed calling webhook "h0.example.com": failed to call webhook: '
        f'Post "https://127.0.0.1:{hook.port}/path?timeout=1s": context deadline exceeded'
    )


async def test_refused_connection_reads_as_in_go(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    config = {"url": "https://127.0.0.1:1/x", "caBundle": hook.bundle}
    configure(stored, "Validating", {"clientConfig": config})
    error = await refused(webhooks, create())
    assert error.message.endswith(
        'Post "https://127.0.0.1:1/x?timeout=2s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


async def test_broken_connection_reads_as_eof(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})

    async def vanish(request: web.Request, review: Object) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    hook.respond = vanish
    assert (await refused(webhooks, create())).message.endswith('/path?timeout=2s": EOF')


async def test_redirect_is_followed(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})

    async def redirect(request: web.Request, review: Object) -> web.StreamResponse:
        if request.path == "/path":
            return web.Response(status=307, headers={"Location": "/other"})
        return web.json_response(review_of(review))

    hook.respond = redirect
    await webhooks.validate(create())
    assert [request.path for request in hook.requests] == ["/path", "/other"]


async def test_answer_429_with_retry_after_is_called_again(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})

    async def busy(request: web.Request, review: Object) -> web.StreamResponse:
        if len(hook.requests) == 1:
            return web.Response(status=429, headers={"Retry-After": "0"})
        return web.json_response(review_of(review))

    hook.respond = busy
    await webhooks.validate(create())
    assert len(hook.requests) == 2


async def test_calls_of_one_webhook_share_a_connection(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    for _ in range(5):
        await webhooks.validate(create())
    assert len(hook.connections) == 1


async def test_second_webhook_gets_the_object_that_the_first_patched(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Mutating", *({"clientConfig": hook.client_config},) * 2)

    async def respond(request: web.Request, review: Object) -> web.StreamResponse:
        labels = review["request"]["object"]["metadata"]["labels"]
        add = {"op": "add", "path": f"/metadata/labels/l{len(labels)}", "value": "x"}
        return await patching(add)(request, review)

    hook.respond = respond
    attributes = create()
    await webhooks.mutate(attributes)
    assert attributes.obj == deployment(l0="x", l1="x")


async def test_patched_object_is_pruned_before_the_next_webhook_gets_it(stored: Stored, hook: Hook) -> None:
    configure(stored, "Mutating", *({"clientConfig": hook.client_config},) * 2)
    hook.respond = patching({"op": "add", "path": "/unknown", "value": 1})

    def prune(attributes: Attributes, obj: Object) -> Object:
        return {key: value for key, value in obj.items() if key != "unknown"}

    webhooks = Webhooks(stored, prune)
    attributes = create()
    await webhooks.mutate(attributes)
    await webhooks.close()
    assert attributes.obj == deployment()
    assert [review["request"]["object"] for review in hook.reviews] == [deployment()] * 2


@pytest.mark.parametrize(("policy", "calls"), [("IfNeeded", ["/a", "/b", "/a"]), ("Never", ["/a", "/b"])])
async def test_patch_by_a_later_webhook_reinvokes_earlier_ones_with_policy_if_needed(
    stored: Stored, webhooks: Webhooks, hook: Hook, policy: str, calls: list[str]
) -> None:
    def at(path: str) -> Object:
        return {"url": f"https://127.0.0.1:{hook.port}{path}", "caBundle": hook.bundle}

    configure(stored, "Mutating", {"clientConfig": at("/a"), "reinvocationPolicy": policy}, {"clientConfig": at("/b")})

    async def respond(request: web.Request, review: Object) -> web.StreamResponse:
        change = patching({"op": "add", "path": "/metadata/labels/b", "value": "x"})
        return await (change if request.path == "/b" else hooks.allow)(request, review)

    hook.respond = respond
    await webhooks.mutate(create())
    assert [request.path for request in hook.requests] == calls


async def test_patch_without_effect_reinvokes_no_webhook(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    spec = {"clientConfig": hook.client_config, "reinvocationPolicy": "IfNeeded"}
    configure(stored, "Mutating", spec, spec)
    hook.respond = patching({"op": "add", "path": "/metadata/labels", "value": {}})
    await webhooks.mutate(create())
    assert len(hook.requests) == 2


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (
            {"patchType": "JSONPatch", "patch": base64.b64encode(b'[{"op":"remove","path":"/x"}]').decode()},
            "Internal error occurred: error in remove for path: '/x': "
            "Unable to remove nonexistent key: x: missing value",
        ),
        (
            {"patch": base64.b64encode(b"[{}]").decode()},
            'Internal error occurred: failed calling webhook "h0.example.com": received invalid webhook response: '
            "webhook returned response.patch but not response.patchType",
        ),
        (
            {"patchType": "JSONPatch"},
            'Internal error occurred: failed calling webhook "h0.example.com": received invalid webhook response: '
            "webhook returned response.patchType but not response.patch",
        ),
        (
            {"patchType": "Merge", "patch": base64.b64encode(b"[{}]").decode()},
            'Internal error occurred: failed calling webhook "h0.example.com": unsupported patch type "Merge"',
        ),
        (
            {"patchType": "JSONPatch", "patch": base64.b64encode(b'{"op":1}').decode()},
            'Internal error occurred: failed calling webhook "h0.example.com": received undecodable patch in webhook '
            "response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
    ],
)
async def test_unusable_patch_refuses_the_request(
    stored: Stored, webhooks: Webhooks, hook: Hook, response: Object, message: str
) -> None:
    configure(stored, "Mutating", {"clientConfig": hook.client_config})
    hook.respond = answering(**response)
    error = await refused(webhooks, create(), mutating=True)
    assert (error.code, error.message) == (500, message)


async def test_patch_of_a_delete_request_is_refused(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Mutating", {"clientConfig": hook.client_config})
    hook.respond = patching({"op": "add", "path": "/x", "value": 1})
    attributes = create(operation="DELETE", old=deployment())
    attributes.obj = None
    assert (await refused(webhooks, attributes, mutating=True)).message == (
        'Internal error occurred: admission webhook "h0.example.com" attempted to modify the object, '
        "which is not supported for this operation"
    )


async def test_patch_by_a_validating_webhook_is_refused(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    hook.respond = patching({"op": "add", "path": "/x", "value": 1})
    assert (await refused(webhooks, create())).message.endswith("validating webhook may not return response.patch")


async def test_validating_webhooks_are_called_concurrently_and_one_denial_is_returned(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    configure(stored, "Validating", *({"clientConfig": hook.client_config},) * 3)
    all_asked = asyncio.Event()

    async def respond(request: web.Request, review: Object) -> web.StreamResponse:
        number = len(hook.requests)
        if number == 3:
            all_asked.set()
        await all_asked.wait()
        return await answering(allowed=False, status={"message": f"objection {number}"})(request, review)

    hook.respond = respond
    error = await refused(webhooks, create())
    assert "objection" in error.message
    assert len(hook.requests) == 3


@pytest.mark.parametrize(("side_effects", "called"), [("None", True), ("NoneOnDryRun", True), ("Some", False)])
async def test_dry_run_with_a_webhook_that_has_side_effects_is_refused(
    stored: Stored, webhooks: Webhooks, hook: Hook, side_effects: str, called: bool
) -> None:
    spec = {"clientConfig": hook.client_config, "sideEffects": side_effects, "failurePolicy": "Ignore"}
    configure(stored, "Validating", spec)
    if called:
        await webhooks.validate(create(dry_run=True))
    else:
        error = await refused(webhooks, create(dry_run=True))
        assert (error.code, error.message) == (400, 'admission webhook "h0.example.com" does not support dry run')
    assert bool(hook.requests) is called


async def test_review_has_the_first_supported_version_that_the_webhook_lists(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    spec = {"clientConfig": hook.client_config, "admissionReviewVersions": ["v9", "v1beta1", "v1"]}
    configure(stored, "Validating", spec)
    await webhooks.validate(create())
    assert hook.reviews[0]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_service_is_called_with_its_dns_name_as_host(stored: Stored, tmp_path: Path) -> None:
    async with hooks.serve(tmp_path, hosts=["gate.system.svc"]) as hook:
        service = {"namespace": "system", "name": "gate", "port": 8443, "path": "/gate"}
        configure(stored, "Validating", {"clientConfig": {"service": service, "caBundle": hook.bundle}})
        asked = []

        def locate(namespace: str, name: str, port: int) -> tuple[str, int]:
            asked.append((namespace, name, port))
            return "127.0.0.1", hook.port

        webhooks = Webhooks(stored, lambda attributes, obj: obj, services=locate)
        await webhooks.validate(create())
        await webhooks.close()
        assert asked == [("system", "gate", 8443)]
        assert hook.requests[0].headers["Host"] == "gate.system.svc:8443"
        assert hook.requests[0].path == "/gate"


async def test_missing_service_is_named_in_the_error(stored: Stored) -> None:
    service = {"namespace": "system", "name": "gate"}
    configure(stored, "Validating", {"clientConfig": {"service": service}})
    webhooks = Webhooks(stored, lambda attributes, obj: obj)
    error = await refused(webhooks, create())
    await webhooks.close()
    assert error.message.endswith('Post "https://gate.system.svc:443/?timeout=2s": service "gate" not found')


async def test_service_is_called_at_the_address_of_its_endpoints(stored: Stored, hook: Hook) -> None:
    port = {"name": "https", "port": 443}
    stored.add(
        an_object("Service", "gate", "system", spec={"ports": [port]}),
        an_object(
            "Endpoints",
            "gate",
            "system",
            subsets=[{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": hook.port}]}],
        ),
    )
    config = {"service": {"namespace": "system", "name": "gate"}, "caBundle": hook.bundle}
    configure(stored, "Validating", {"clientConfig": config})
    webhooks = Webhooks(stored, lambda attributes, obj: obj)
    error = await refused(webhooks, create())
    await webhooks.close()
    # The TLS error shows that the webhook was reached: its certificate is for another name.
    assert error.message.endswith(
        "tls: failed to verify certificate: x509: certificate is not valid for any names, "
        "but wanted to match gate.system.svc"
    )


async def test_certificate_of_another_ca_with_the_same_name_reads_as_in_go(
    stored: Stored, webhooks: Webhooks, hook: Hook
) -> None:
    other = hooks.Authority.create("hooks", lifetime=hooks.LIFETIME)
    bundle = base64.b64encode(other.pair.certificate).decode()
    configure(stored, "Validating", {"clientConfig": {**hook.client_config, "caBundle": bundle}})
    error = await refused(webhooks, create())
    assert error.message.endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of "
        '"x509: ECDSA verification failure" while trying to verify candidate authority certificate "hooks")'
    )


async def test_expired_certificate_or_certificate_for_another_host_is_refused(stored: Stored, tmp_path: Path) -> None:
    authority = hooks.Authority.create("hooks", lifetime=hooks.LIFETIME)
    expired = authority.issue("hook", hosts=["127.0.0.1"], lifetime=-datetime.timedelta(minutes=1))
    other = authority.issue("hook", hosts=["10.0.0.1"], lifetime=hooks.LIFETIME)
    bundle = base64.b64encode(authority.pair.certificate).decode()
    for pair, text in (
        (expired, "x509: certificate has expired or is not yet valid: current time "),
        (other, "x509: certificate is valid for 10.0.0.1, not 127.0.0.1"),
    ):
        async with hooks.serve(tmp_path, pair=pair) as hook:
            stored.objects[:] = [NAMESPACE]
            configure(stored, "Validating", {"clientConfig": {**hook.client_config, "caBundle": bundle}})
            webhooks = Webhooks(stored, lambda attributes, obj: obj)
            error = await refused(webhooks, create())
            await webhooks.close()
            assert f"tls: failed to verify certificate: {text}" in error.message


async def test_metrics_count_calls_and_rejections(stored: Stored, webhooks: Webhooks, hook: Hook) -> None:
    configure(stored, "Validating", {"clientConfig": hook.client_config})
    await webhooks.validate(create())
    hook.respond = answering(allowed=False, status={"code": 403})
    await refused(webhooks, create())
    hook.respond = saying(500)
    await refused(webhooks, create())
    text = webhooks.metrics.text()
    common = 'name="h0.example.com",operation="CREATE"'
    for line in (
        f'rejection_count{{error_type="no_error",{common},rejection_code="403",type="validating"}} 1',
        f'rejection_count{{error_type="calling_webhook_error",{common},rejection_code="500",type="validating"}} 1',
        f'request_total{{code="200",{common},rejected="false",type="validating"}} 1',
    ):
        assert f"apiserver_admission_webhook_{line}" in text
