"""Leader election with a Lease: at most one leader at a time.

The rules are those of client-go's leader election. The clock is monotonic, so a change of the wall clock has no effect.
`_Lock` takes and renews the Lease, and limits the time of its requests. `lead` stops the work before another candidate
can become the leader.

LeaderElection of kubernetes-asyncio is not used. It is made for processes that exit when they lose the lease. It uses
the wall clock, has no timeout for requests, and takes half a second to import.
"""

import asyncio
import datetime
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError, NotFoundError
from kube_base.errors import UsageError
from kube_base.resources import LEASES

logger = logging.getLogger(__name__)

MIN_LEASE_DURATION = 2.0
"""Seconds. The candidate tries at most once a second, and two tries must be possible before the deadline."""

_RENEW_DEADLINE = 10 / 15  # of the lease's duration; client-go's defaults are 15, 10 and 2 seconds
_RETRY_PERIOD = 2 / 15


async def lead(
    client: Client,
    *,
    name: str,
    namespace: str,
    identity: str,
    lease_duration: float,
    on_started: Callable[[], Awaitable[None]],
) -> None:
    """Run `on_started()` while this candidate holds the Lease. Only one candidate in the cluster does so at a time.

    It returns when `on_started` returns, and raises its errors. If the lease cannot be renewed, `on_started` is
    cancelled after two thirds of `lease_duration`; the last third is its time to clean up. Then the candidate tries to
    get the lease again. When this returns or is cancelled, it releases the Lease, so that another candidate need not
    wait. UsageError for a `lease_duration` below two seconds.

    The Lease has separate connections, so that other requests that hang do not prevent its renewal.
    """
    if lease_duration < MIN_LEASE_DURATION:
        raise UsageError(f"a lease of {lease_duration:g} s is too short; give it {MIN_LEASE_DURATION:g} s or more")
    ended = False
    async with client.with_own_connections() as own:
        while not ended:
            ended = await _term(_Lock(own, name, namespace, identity, lease_duration), on_started)


async def _term(lock: "_Lock", on_started: Callable[[], Awaitable[None]]) -> bool:
    """Wait for the lease and lead once. True if `on_started` returned, False if the lease was lost."""
    election_task = asyncio.create_task(_elect(lock))
    won = asyncio.create_task(lock.won.wait())
    work: asyncio.Future[None] | None = None
    try:
        await asyncio.wait((election_task, won), return_when=asyncio.FIRST_COMPLETED)
        if not lock.won.is_set():
            election_task.result()  # without the lease, it ends only with an error
        logger.info("leading", extra={"lease": lock.name, "identity": lock.identity})
        work = asyncio.ensure_future(on_started())
        while not work.done() and not election_task.done() and lock.left > 0:
            await asyncio.wait((work, election_task), timeout=lock.left, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return True
        if election_task.done():
            election_task.result()
        logger.warning("lost the lease, no longer the leader", extra={"lease": lock.name, "identity": lock.identity})
        return False
    finally:
        won.cancel()
        if work is not None:
            await _stop(work)  # the election renews the lease until the work has ended
        await _stop(election_task)
        await lock.release()


async def _elect(lock: "_Lock") -> None:
    """Take the lease as soon as it is free, then renew it, until this task is cancelled."""
    period = max(1.0, lock.lease_duration * _RETRY_PERIOD)
    while True:
        await lock.take_or_renew()
        await asyncio.sleep(period)


async def _stop(task: asyncio.Future[None]) -> None:
    if task.done():
        return
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the task failed while it was stopped", exc_info=error)


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lock:
    """The Lease as this candidate has last read or written it."""

    def __init__(self, client: Client, name: str, namespace: str, identity: str, lease_duration: float) -> None:
        self.name = name
        self.identity = identity
        self.lease_duration = lease_duration
        self.renew_deadline = lease_duration * _RENEW_DEADLINE
        self.won = asyncio.Event()
        self._client = client
        self._namespace = namespace
        self._renewed = -math.inf
        self._lease: dict[str, Any] = {}
        self._spec = _Spec()
        self._unchanged_since = -math.inf
        self._reported: dict[str, str] = {}  # by verb: the cause that was logged last

    @property
    def left(self) -> float:
        """Seconds until the work has to stop if the lease is not renewed. They count from the time at which the last
        renewal was sent. Other candidates count from the time at which they see the renewal, which is later."""
        return self._renewed + self.renew_deadline - _now()

    async def take_or_renew(self) -> None:
        """Write the Lease, unless another candidate holds it. Sets `won` after a success. Errors are logged."""
        missing = False
        try:
            await self._read()
        except NotFoundError:
            missing = True
            self._lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self.name, "namespace": self._namespace},
            }
        except KubernetesError as error:
            self._report("read", error)
            return
        self._reported.pop("read", None)
        if not self._has_other_holder:  # the last holder of a deleted Lease may still lead
            await self._renew(create=missing)

    async def release(self) -> None:
        """Release the Lease if this candidate holds it, as client-go's ReleaseOnCancel does."""
        if not self.won.is_set():
            return
        try:
            await self._read()  # a renewal without a response may have succeeded
            if self._spec.holder_identity == self.identity:
                now = _timestamp()
                await self._write(
                    create=False, holderIdentity="", leaseDurationSeconds=1, acquireTime=now, renewTime=now
                )
                logger.info("released the lease", extra={"lease": self.name, "identity": self.identity})
        except KubernetesError as error:
            logger.info("could not release the lease, it will expire", extra={"lease": self.name, "cause": str(error)})

    @property
    def _has_other_holder(self) -> bool:
        if not self._spec.holder_identity or self._spec.holder_identity == self.identity:
            return False
        duration = self._spec.lease_duration_seconds or self.lease_duration
        return _now() < self._unchanged_since + duration

    async def _renew(self, *, create: bool) -> None:
        sent = _now()
        ours = self._spec.holder_identity == self.identity
        now = _timestamp()
        try:
            await self._write(
                create=create,
                holderIdentity=self.identity,
                leaseDurationSeconds=math.ceil(self.lease_duration),
                acquireTime=self._spec.acquire_time if ours and self._spec.acquire_time else now,
                renewTime=now,
                leaseTransitions=(self._spec.lease_transitions or 0) + (0 if ours or create else 1),
            )
        except KubernetesError as error:
            self._report("renew" if self.won.is_set() else "take", error)
            return
        self._renewed = sent
        self._reported.clear()
        self.won.set()

    async def _read(self) -> None:
        self._remember(await self._bounded(self._client.get(LEASES, self.name, self._namespace)))

    async def _write(self, *, create: bool, **spec: object) -> None:
        lease = {**self._lease, "spec": {**(self._lease.get("spec") or {}), **spec}}
        self._remember(
            await self._bounded(
                self._client.create(LEASES, lease, self._namespace)
                if create
                else self._client.replace(LEASES, lease, self.name, self._namespace)
            )
        )

    async def _bounded(self, request: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self.renew_deadline / 2):
                return await request
        except TimeoutError as error:
            raise KubernetesError(f"no response within {self.renew_deadline / 2:g} s") from error

    def _remember(self, lease: dict[str, Any]) -> None:
        try:
            spec = msgspec.convert(lease.get("spec") or {}, _Spec)
        except msgspec.ValidationError as error:
            raise KubernetesError(f"the Lease cannot be decoded: {error}") from error
        self._lease = lease
        if spec != self._spec:
            self._spec = spec
            self._unchanged_since = _now()

    def _report(self, verb: str, error: KubernetesError) -> None:
        cause = str(error)
        if self._reported.get(verb) != cause:
            self._reported[verb] = cause
            logger.warning(f"cannot {verb} the lease", extra={"lease": self.name, "cause": cause})


def _now() -> float:
    return asyncio.get_running_loop().time()


def _timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
