"""Calls admission webhooks: mutating webhooks one after another, validating webhooks in parallel.

The rules are those of kube-apiserver's `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from kube_sandbox.apiserver.admission.policies import Policies
from kube_sandbox.apiserver.admission.webhooks import match, review
from kube_sandbox.apiserver.admission.webhooks.call import Services, WebhookClient
from kube_sandbox.apiserver.admission.webhooks.candidates import Candidates
from kube_sandbox.apiserver.admission.webhooks.client_certificates import MUTATING, VALIDATING, ClientCertificates
from kube_sandbox.apiserver.admission.webhooks.conditions import Evaluations
from kube_sandbox.apiserver.admission.webhooks.match import Hook
from kube_sandbox.apiserver.admission.webhooks.metrics import AdmissionMetrics
from kube_sandbox.apiserver.admission.webhooks.review import CallError, Invocation, Response, versioned
from kube_sandbox.apiserver.admission.webhooks.services import from_endpoints
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader
from kube_sandbox.apiserver.auth.authorization import Authorizer
from kube_sandbox.apiserver.errors import StatusError, internal_error
from kube_sandbox.apiserver.gotext import quoted
from kube_sandbox.apiserver.patch import json_patch

logger = logging.getLogger(__name__)

Normalize = Callable[[Attributes, Object], Object]
"""Decodes a patched object: removes unknown fields and sets defaults. Raises StatusError when it cannot decode it."""


class Webhooks:
    """Calls the webhooks in the stored configurations, with client certificates by the name of the admission plugin.
    The owner must call `close`."""

    def __init__(
        self,
        reader: Reader,
        normalize: Normalize,
        *,
        authorizer: Authorizer | None = None,
        services: Services | None = None,
        certificates: Mapping[str, ClientCertificates] | None = None,
    ) -> None:
        self.metrics = AdmissionMetrics()
        self._reader = reader
        self._normalize = normalize
        self._authorizer = authorizer
        self._policies = Policies(reader)
        self._mutating_hooks = _hooks(reader, "mutatingwebhookconfigurations")
        self._validating_hooks = _hooks(reader, "validatingwebhookconfigurations")
        services, certificates = services or from_endpoints(reader), certificates or {}
        self._mutating = WebhookClient(services, certificates.get(MUTATING))
        self._validating = WebhookClient(services, certificates.get(VALIDATING))

    async def close(self) -> None:
        await self._mutating.close()
        await self._validating.close()

    async def mutate(self, attributes: Attributes) -> None:
        """Call the mutating webhooks, which may change `attributes.obj` and add to `attributes.warnings`.

        A webhook with reinvocationPolicy IfNeeded is called a second time if a later webhook changed the object. Raises
        StatusError when a webhook denies the request, fails, or returns an invalid response."""
        if match.is_exempt(attributes):
            return
        hooks = self._mutating_hooks.of(attributes)
        evaluations = Evaluations(attributes, self._authorizer)
        seen: set[str] = set()
        repeated: set[str] = set()
        for first_round in (True, False):
            for hook in hooks:
                if not first_round and hook.uid not in repeated:
                    continue
                invocation = match.match(hook, attributes, self._reader, evaluations)
                if invocation is None:
                    continue
                if await self._mutate(hook, attributes, invocation):
                    repeated |= seen
                    seen = set()
                if hook.spec.get("reinvocationPolicy") == "IfNeeded":
                    seen.add(hook.uid)

    async def validate(self, attributes: Attributes) -> None:
        """Evaluate the ValidatingAdmissionPolicies, then call all validating webhooks in parallel. Raises the
        StatusError of the first policy or webhook that denies the request or fails."""
        if match.is_exempt(attributes):
            return
        evaluations = Evaluations(attributes, self._authorizer)
        self._policies.check(attributes, evaluations)
        called = [
            (hook, invocation)
            for hook in self._validating_hooks.of(attributes)
            if (invocation := match.match(hook, attributes, self._reader, evaluations))
        ]
        errors: list[StatusError] = []

        async def validate(hook: Hook, invocation: Invocation) -> None:
            try:
                await self._call_with_policy(hook, attributes, invocation, mutating=False)
            except StatusError as error:
                errors.append(error)

        async with asyncio.TaskGroup() as group:
            for hook, invocation in called:
                group.create_task(validate(hook, invocation))
        if errors:
            raise errors[0]

    async def _mutate(self, hook: Hook, attributes: Attributes, invocation: Invocation) -> bool:
        """Call one mutating webhook and apply its patch. Returns whether the patch changed the object."""
        patched = await self._call_with_policy(hook, attributes, invocation, mutating=True)
        if patched is None:
            return False
        patched = _in_request_version(patched, attributes)
        changed = patched != attributes.obj
        try:
            attributes.obj = self._normalize(attributes, patched)
        except StatusError as error:
            # The text of the decoder, without the part about the client's request.
            why = error.message.partition(" cannot be handled as a ")[2].partition(": ")[2]
            raise internal_error(why or error.message) from error
        return changed

    async def _call_with_policy(
        self, hook: Hook, attributes: Attributes, invocation: Invocation, *, mutating: bool
    ) -> Object | None:
        """Call one webhook and apply its failurePolicy. Returns the patched object, or None without a patch."""
        count = self.metrics.of(hook.name, "admit" if mutating else "validating", attributes.operation)
        ignore = hook.spec.get("failurePolicy") == "Ignore"
        try:
            response = await self._call(hook, attributes, invocation, mutating=mutating)
            attributes.warnings += response.warnings
            if not response.allowed:
                raise review.denied(hook.name, response.status)
            patched = _patched(hook.name, response, versioned(attributes.obj, attributes, invocation))
        except CallError as error:
            why = f"failed calling webhook {quoted(hook.name)}: {error}"
            count.failed_call(error.code, ignored=ignore)
            if ignore:
                logger.warning("%s; the request continues because the failurePolicy is Ignore", why)
                return None
            raise internal_error(why) from error
        except StatusError as error:
            count.rejected(error)
            raise
        count.called(200, rejected=False)
        return patched

    async def _call(self, hook: Hook, attributes: Attributes, invocation: Invocation, *, mutating: bool) -> Response:
        if attributes.dry_run and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise StatusError(400, f"admission webhook {quoted(hook.name)} does not support dry run")
        version, uid = review.review_version(hook.spec), str(uuid.uuid4())
        client = self._mutating if mutating else self._validating
        body = await client.post(hook.spec, review.review(uid, version, attributes, invocation))
        return review.decode_response(body, uid, version, mutating=mutating)


def _patched(name: str, response: Response, obj: Object | None) -> Object | None:
    """The object with the patch of a response applied, or None without a patch."""
    if not response.patch:
        return None
    try:
        patch: Any = orjson.loads(response.patch)
    except orjson.JSONDecodeError as error:
        raise CallError(f"received undecodable patch in webhook response: {error}") from error
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        what = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        raise CallError(f"received undecodable patch in webhook response: {what}")
    if not patch:
        return None
    if obj is None:
        what = "attempted to modify the object, which is not supported for this operation"
        raise internal_error(f"admission webhook {quoted(name)} {what}")
    if response.patch_type != "JSONPatch":
        raise CallError(f"unsupported patch type {quoted(response.patch_type)}")
    try:
        patched = json_patch.apply(obj, patch)
    except json_patch.PatchError as error:
        raise internal_error(str(error)) from error
    if not isinstance(patched, dict):
        raise internal_error(f"the result of the patch of admission webhook {quoted(name)} is not an object")
    return patched


def _in_request_version(patched: Object, attributes: Attributes) -> Object:
    """A patched object in the API version of the request. A patch may remove the kind, but not change it. Raises
    StatusError 500."""
    sent = attributes.obj or {}
    if attributes.subresource and "kind" not in sent:
        return patched
    kind = patched.get("kind") or sent["kind"]
    if kind != sent["kind"]:
        raise internal_error(f"converting ({patched.get('apiVersion')}.{kind}) to ({sent['kind']}): unknown conversion")
    return {**patched, "apiVersion": sent["apiVersion"], "kind": kind}


def _hooks(reader: Reader, plural: str) -> Candidates[Hook]:
    """The webhooks of these configurations that may match a request, in the order of calls."""
    return Candidates(
        lambda: [reader.list(match.GROUP, plural)], match.hooks, lambda hook: hook.spec.get("rules") or ()
    )
