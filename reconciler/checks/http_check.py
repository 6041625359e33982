"""The check `http`: a POST request with the batch, whose answer is the verdict. Or the receiver sends the verdict
later, to the callback port.

The request fits receivers of Flagger's webhooks: `name`, `namespace`, `phase`, `checksum` and `metadata` are the fields
of Flagger's CanaryWebhookPayload. As with Flagger, each status below 300 passes the batch, except for 202, and each
other status fails it. The following answers differ from Flagger, because they say nothing about the batch:

- 202: the receiver needs more time. The request is repeated, and a callback is accepted.
- the verdict `callback`: the receiver sends a callback. The request is not repeated.
- 408, 425, 429, 502, 503, 504, and no answer: the receiver is overloaded, being replaced, or down. The request is
  repeated. At the deadline, the check is Unknown.
- a redirect: it is not followed. The check is Unknown.

A request may arrive more than once: after an answer that was lost, after a restart of the reconciler, and after 202. It
then has the same body and the same header Idempotency-Key. So a receiver that starts something starts it once per key.

A callback is signed with the key of the Secret that the check names. Without such a key, no callback is accepted, and
the request offers none.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from altershield.api.check_specs import HttpCheck, Phase, SecretRef
from altershield.api.names import change_pod_number
from altershield.api.pod_verdicts import PodInfo
from reconciler.checks.check import (
    Availability,
    Fail,
    Lost,
    NotStarted,
    Pass,
    Pending,
    PollAnswer,
    Result,
    StartAnswer,
    Started,
    Subject,
    Unknown,
)
from reconciler.checks.identity import CALLBACK_PATH, check_id, run_of
from reconciler.checks.reasons import reason
from reconciler.checks.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, signature
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_client import TIMEOUT, Outbound, Reply
from reconciler.outbound.outbound_errors import NoAnswerError, NotDeliveredError, OutboundError, SecretUnreadableError
from reconciler.outbound.secrets import Secrets

ID_HEADER = "Idempotency-Key"

_MAX_PODS = 1000  # in a request
_NOT_YET = (408, 425, 429, 502, 503, 504)
_LEAST_SECONDS = 1.0  # for a request that begins at the deadline
_BY_CALLBACK = "callback:"  # the beginning of the handle of a check whose request is not repeated


@dataclass(frozen=True, slots=True)
class ByCallback:
    """The receiver sends the verdict to the callback port."""

    message: str = ""


class _Answer(msgspec.Struct, frozen=True):
    """The optional JSON body of an answer."""

    verdict: str | None = None
    message: str | None = None


class HttpCheckRunner:
    """`clock` returns Unix seconds. `callback_url` is the URL of the callback port; empty: only its path is known;
    None: there is no such port."""

    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset(Phase)
    """All phases: the header Idempotency-Key tells the receiver that it has seen the request."""

    def __init__(
        self, outbound: Outbound, secrets: Secrets, clock: Callable[[], float], callback_url: str | None = None
    ) -> None:
        self._outbound = outbound
        self._secrets = secrets
        self._clock = clock
        self._callback_url = callback_url

    async def start(self, subject: Subject) -> StartAnswer:
        """Send the batch."""
        try:
            answer = await self._ask(subject)
        except (NotDeliveredError, SecretUnreadableError) as error:
            return NotStarted(reason(str(error)))
        except NoAnswerError as error:
            return Lost(reason(str(error)))
        except OutboundError as error:
            return Unknown(reason(str(error)))
        if isinstance(answer, Pending):
            # The handle of a check that waits for a callback is stored at once: without it, the request is repeated.
            return Started(answer.handle or check_id(subject), unique=bool(answer.handle))
        return answer

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Send the batch again, unless the receiver sends a callback."""
        if handle.startswith(_BY_CALLBACK):
            waiting = "the receiver wants to send the verdict to the callback port"
            return Unknown(f"{waiting}, and has not done so in time") if last else Pending(waiting)
        try:
            answer = await self._ask(subject)
        except (NotDeliveredError, SecretUnreadableError, NoAnswerError) as error:
            answer = Pending(reason(str(error)))
        except OutboundError as error:
            return Unknown(reason(str(error)))
        return Unknown(answer.reason) if last and isinstance(answer, Pending) else answer

    async def end(self, subject: Subject, handle: str) -> None:
        """Nothing is left to clean up."""

    async def _ask(self, subject: Subject) -> Pending | Result:
        """OutboundError: there is no answer."""
        check = subject.check.http
        if check is None:
            return Unknown(f"the check {subject.check.name} is no http check")
        credentials = await self._credentials(subject, check.secret_ref)
        offer = {} if self._no_callback(check, credentials) else self._offer(subject)
        body = content(subject, check, offer)
        now = self._clock()
        headers = {
            "Content-Type": "application/json",
            ID_HEADER: check_id(subject),
            TIMESTAMP_HEADER: str(int(now)),
        }
        if credentials is not None and credentials.hmac:
            headers[SIGNATURE_HEADER] = signature(credentials.hmac, int(now), body)
        timeout = min(TIMEOUT, max(_LEAST_SECONDS, subject.deadline - now))
        reply = await self._outbound.request(
            "POST", check.url, headers=headers, body=body, credentials=credentials, timeout=timeout
        )
        answer = verdict(reply)
        why_not = self._no_callback(check, credentials)
        if isinstance(answer, ByCallback):
            if why_not:
                return Unknown(reason(f"the receiver wants to send a callback, but none is accepted: {why_not}"))
            return Pending(answer.message, handle=f"{_BY_CALLBACK}{check_id(subject)}")
        if isinstance(answer, Pending) and reply.status == 202 and why_not:
            return Pending(reason(f"{answer.reason} (a callback is not accepted: {why_not})"))
        return answer

    def _no_callback(self, check: HttpCheck, credentials: Credentials | None) -> str:
        """Why no callback about the check is accepted; empty if one is."""
        if self._callback_url is None:
            return "the reconciler has no callback port; set server.callbacks.enabled of the chart"
        if check.secret_ref is None or credentials is None:
            return "the check has no secretRef"
        return "" if credentials.hmac else f"the Secret {check.secret_ref.name} has no key hmac"

    def _offer(self, subject: Subject) -> dict[str, str]:
        """The run and the address that a receiver needs to send a callback."""
        offer = {"run": str(run_of(subject)), "path": CALLBACK_PATH}
        return offer | ({"url": f"{self._callback_url}{CALLBACK_PATH}"} if self._callback_url else {})

    async def _credentials(self, subject: Subject, secret: SecretRef | None) -> Credentials | None:
        if secret is None:
            return None
        return await self._secrets.read(subject.release.spec.policy.namespace, secret.name)


def content(subject: Subject, check: HttpCheck, offer: Mapping[str, str]) -> bytes:
    """The body of the request. It is the same each time. `offer` says where a callback is accepted; empty: none is."""
    change_pod, release = subject.change_pod, subject.release
    workload = release.spec.workload_ref
    pods = change_pod.spec.pod_infos
    batch: dict[str, Any] = {
        "id": check_id(subject),
        "check": subject.check.name,
        "phase": change_pod.spec.phase or subject.phase,
        "timeoutSeconds": round(subject.deadline - subject.started),
        "policy": release.spec.policy.name,
        "workload": {
            "apiVersion": workload.api_version,
            "kind": workload.kind,
            "name": workload.name or release.spec.service_name,
            "namespace": change_pod.metadata.namespace,
            "uid": workload.uid,
        },
        "version": release.spec.reversion,
        "previousVersion": release.status.previous.version,
        "changeWorkload": release.metadata.name,
        "changePod": change_pod.metadata.name,
        "batch": change_pod_number(change_pod.metadata.name),
        "podCount": len(pods),
        "pods": [_pod(pod) for pod in pods[:_MAX_PODS]],
    }
    if offer:
        batch["callback"] = offer
    payload = {
        "name": workload.name or release.spec.service_name,
        "namespace": change_pod.metadata.namespace,
        "phase": "Progressing",  # of Flagger's canary; the phase of the check is in our own object
        "checksum": release.spec.reversion,
        "metadata": check.metadata,
        "altershield": batch,
    }
    return json.dumps(payload, separators=(",", ":")).encode()


def verdict(reply: Reply) -> Pending | ByCallback | Result:
    """The result of the check, from the answer of the receiver."""
    status = reply.status
    said = f"the server answered HTTP {status}"
    if 300 <= status < 400:
        return Unknown(f"{said}, a redirect, which is not followed; set the URL that it leads to")
    if status in _NOT_YET:
        return Pending(said)
    try:
        answer = _answer(reply)
    except ValueError as error:
        return Unknown(f"{said}, but {error}")
    message = reason(answer.message or "")
    if status >= 300 or status < 200:
        text = message or reason(reply.body[:4096].decode(errors="replace"))
        return Fail(reason(f"{said}: {text}" if text else said))
    match answer.verdict:
        case "pass":
            return Pass(message)
        case "fail":
            return Fail(message or f"{said} with the verdict fail")
        case "unknown":
            return Unknown(message or f"{said} with the verdict unknown")
        case "pending":
            return Pending(message or f"{said} with the verdict pending")
        case "callback":
            return ByCallback(message)
        case None:
            return Pending(message or said) if status == 202 else Pass(message)
    return Unknown(
        reason(f"{said} with the verdict {answer.verdict!r}, which is not pass, fail, unknown, pending or callback")
    )


def _answer(reply: Reply) -> _Answer:
    """The body, if it is JSON; empty for any other text. ValueError: it says that it is JSON, and is not."""
    declared = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "application/json"
    if not declared and not reply.body.lstrip().startswith(b"{"):
        return _Answer()
    if not reply.body.strip():
        return _Answer()
    try:
        found = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        if not declared or reply.status >= 300:
            return _Answer()
        raise ValueError("its body is not JSON") from None
    if not isinstance(found, dict):
        return _Answer()  # "OK", true, …
    try:
        return msgspec.convert(found, _Answer)
    except msgspec.ValidationError:
        if reply.status >= 300:
            return _Answer()
        raise ValueError("its verdict or message is not a text") from None


def _pod(pod: PodInfo) -> dict[str, str]:
    return {"name": pod.pod, "uid": pod.uid, "ip": pod.ip}
