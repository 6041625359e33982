"""Writes a request into the status of a ChangeWorkload, and waits for the reconciler's answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from altershield import releases
from altershield.api.names import LEASE, SYSTEM_NAMESPACE
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.workload_requests import Action, Request, Verb
from altershield.views import permission
from altershield.views.releases.model import StoredRelease, stored
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from kube_base.access.informer import Informer
from kube_base.errors import ReportedError
from kube_base.meta import ObjectMeta

ANSWER_SECONDS = 30.0
"""Seconds until the reconciler has to answer a request."""


class RequestError(ReportedError):
    """A request of a person was not carried out."""


class Answer(NamedTuple):
    action: Action
    release: StoredRelease
    """The ChangeWorkload with the answer."""


async def ask(client: Client, found: StoredRelease, request: Request, seconds: float = ANSWER_SECONDS) -> Answer:
    """Store the request, and return the answer. RequestError: the API server refuses the request, the version was
    released again since `found` was read, or the reconciler does not answer in time.

    A request of somebody else that the reconciler has not answered yet is not overwritten.
    """
    metadata = found.metadata
    pending = found.release.status.request
    try:
        async with asyncio.timeout(seconds), aclosing(_changes(client, metadata)) as changes:
            async for release in changes:
                pending = release.release.status.request
                if _started_again(found, release):
                    raise RequestError(
                        f"the version of ChangeWorkload {metadata.name} was released again meanwhile, so the request "
                        "was not made; to see the new release, run altershield why"
                    )
                if pending is None and await _store(client, release, request):
                    pending, before = request, release.release.status.actions
                    break
            async for release in changes:
                answer = _answer(release, request, before)
                if answer is not None:
                    return Answer(answer, release)
    except TimeoutError:
        raise _unanswered(metadata, pending, request, seconds) from None
    raise AssertionError("changes never end")


def asked_for(answer: Answer) -> frozenset[str]:
    """The versions whose success is what the request asked for: the target of a rollback, else the version that the
    request is about. The target from before AlterShield has only a fingerprint."""
    release = answer.release.release
    target = release.status.rollback_target
    if answer.action.verb == Verb.ROLLBACK and target.uid:
        return frozenset({target.version, target.fingerprint} - {""})
    return frozenset({releases.version_of(release)})


async def _store(client: Client, release: StoredRelease, request: Request) -> bool:
    """Whether the request was stored. False: the ChangeWorkload has changed."""
    metadata = release.metadata
    patch = {
        "metadata": {"resourceVersion": metadata.resource_version, "uid": metadata.uid},
        "status": {"request": msgspec.to_builtins(request)},
    }
    try:
        answer = await client.patch(
            CHANGE_WORKLOADS, patch, metadata.name, metadata.namespace, subresource="status", as_=msgspec.Raw
        )
    except ConflictError:
        return False
    except NotFoundError:
        raise _deleted(metadata) from None
    except ForbiddenError as error:
        attempt = f"write the request into ChangeWorkload {metadata.name} {permission.place(metadata.namespace)}"
        role = permission.role("altershield-verdicts", metadata.namespace)
        raise RequestError(permission.refused(attempt, error, role)) from error
    except InvalidError as error:
        raise RequestError(f"the API server refuses the request: {error}") from error
    if stored(answer).release.status.request is None:
        raise RequestError(
            "the CustomResourceDefinition changeworkloads of this cluster has no field `status.request`: it is of an "
            "older release of AlterShield; upgrade AlterShield in the cluster"
        )
    return True


async def _changes(client: Client, metadata: ObjectMeta) -> AsyncGenerator[StoredRelease, None]:
    """The ChangeWorkload, and again after every change. RequestError when it is deleted."""
    informer = Informer(
        client,
        CHANGE_WORKLOADS,
        StoredRelease,
        read=stored,
        namespace=metadata.namespace,
        field_selector=f"metadata.name={metadata.name}",
        resync=0,
    )
    changed = asyncio.Event()
    informer.add_handler(lambda _old, _new: changed.set())
    running = asyncio.create_task(informer.run())
    try:
        await informer.wait_synced()
        while True:
            changed.clear()
            release = informer.get(metadata.namespace, metadata.name)
            if release is None or release.metadata.uid != metadata.uid:
                raise _deleted(metadata)
            yield release
            await changed.wait()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _answer(release: StoredRelease, request: Request, before: tuple[Action, ...]) -> Action | None:
    """The newest new answer to the request; None if there is none yet."""
    wanted = (request.verb, request.by, request.reason)
    new = [each for each in release.release.status.actions if each not in before]
    return next((each for each in reversed(new) if (each.verb, each.by, each.reason) == wanted), None)


def _started_again(found: StoredRelease, release: StoredRelease) -> bool:
    """Whether the ChangeWorkload is about a newer release of its version."""
    known, now = found.release.spec, release.release.spec
    return (known.workload_generation, known.create_time_unix) != (now.workload_generation, now.create_time_unix)


def _deleted(metadata: ObjectMeta) -> RequestError:
    return RequestError(
        f"ChangeWorkload {metadata.name} was deleted before its request was carried out: its workload was deleted, or "
        "a newer version succeeded"
    )


def _unanswered(metadata: ObjectMeta, pending: Request | None, request: Request, seconds: float) -> RequestError:
    check = (
        "check that the reconciler runs and the namespace is governed: "
        f"kubectl get lease {LEASE} -n {SYSTEM_NAMESPACE}; kubectl get namespace {metadata.namespace} --show-labels"
    )
    if pending is not None and (pending.verb, pending.by, pending.reason) != (request.verb, request.by, request.reason):
        return RequestError(
            f"the request {pending.verb} by {pending.by or 'an unnamed user'} on ChangeWorkload {metadata.name} has "
            f"not been carried out within {seconds:.0f} s, and yours was not stored; {check}"
        )
    return RequestError(
        f"no reconciler has carried out the request {request.verb} on ChangeWorkload {metadata.name} within "
        f"{seconds:.0f} s; it stays stored and is carried out later; {check}"
    )
