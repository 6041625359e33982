"""Reads the releases from the cluster: once, or after every change."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

import msgspec

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.views import permission
from altershield.views.releases.model import Snapshot, StatusError, StoredRelease, stored
from altershield.views.selection import Selection, full_plural
from altershield.workloads import Adapter, named_kind
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.access.informer import Informer

_SETTLE = 0.1  # seconds: changes in this interval are printed together


class Query(NamedTuple):
    """A list request for workloads of one kind: by name, or all.

    It does not select by the version label: a workload that lost the label has releases.
    """

    adapter: Adapter
    field_selector: str
    typed: bool = False
    """Whether the user named the workload with its kind."""


def queries(selections: Sequence[Selection]) -> list[Query]:
    """The list requests for the selections, without duplicates."""
    wanted = dict.fromkeys((adapter, selection.name) for selection in selections for adapter in selection.adapters)
    unnamed = {adapter for adapter, name in wanted if not name}
    typed = {
        (selection.adapters[0], selection.name)
        for selection in selections
        if selection.name and len(selection.adapters) == 1
    }
    return [
        Query(
            adapter,
            f"metadata.name={name}" if name else "",
            typed=(adapter, name) in typed,
        )
        for adapter, name in wanted
        if not name or adapter not in unnamed
    ]


class Reader:
    """Reads the releases of `selections` in a namespace. An empty namespace means all namespaces."""

    def __init__(self, client: Client, namespace: str, selections: Sequence[Selection]) -> None:
        self._client = client
        self._namespace = namespace
        self._queries = queries(selections)

    async def read(self) -> Snapshot:
        """The present releases. StatusError: AlterShield is not installed, or the user may not read releases."""
        stored_releases = await self._releases()
        workloads: list[Workload] = []
        for query in list(self._queries):
            found = await self._workloads(query, stored_releases)
            if found is None:
                self._queries.remove(query)  # `changes` does not watch a kind that the cluster does not have
            workloads += found or ()
        return Snapshot(workloads, stored_releases)

    async def changes(self) -> AsyncGenerator[Snapshot, None]:
        """The present releases, and again after every change. Call `read` first, because it reports errors."""
        release_informer = Informer(
            self._client, CHANGE_WORKLOADS, StoredRelease, read=stored, namespace=self._namespace, resync=0
        )
        workloads = [
            Informer(
                self._client,
                query.adapter.resource,
                Workload,
                read=query.adapter.read,
                namespace=self._namespace,
                field_selector=query.field_selector,
                resync=0,
            )
            for query in self._queries
        ]
        changed = asyncio.Event()
        release_informer.add_handler(lambda _old, _new: changed.set())
        for informer in workloads:
            informer.add_handler(lambda _old, _new: changed.set())
        async with _running([release_informer.run, *(informer.run for informer in workloads)]):
            await asyncio.gather(release_informer.wait_synced(), *(informer.wait_synced() for informer in workloads))
            while True:
                changed.clear()
                yield Snapshot([each for informer in workloads for each in informer.all()], release_informer.all())
                await changed.wait()
                await asyncio.sleep(_SETTLE)

    async def _releases(self) -> list[StoredRelease]:
        try:
            listed = await self._client.list(CHANGE_WORKLOADS, self._namespace, as_=msgspec.Raw)
        except NotFoundError:
            raise StatusError(
                f"AlterShield is not installed in the cluster at {self._client.server}; install it, or set another "
                "context with --context"
            ) from None
        except ForbiddenError as error:
            raise self._forbidden("ChangeWorkloads", error, "view") from error
        return [stored(item) for item in listed.items]

    async def _workloads(self, query: Query, stored_releases: Sequence[StoredRelease]) -> list[Workload] | None:
        """The workloads of a query. None: the cluster does not have the kind."""
        adapter = query.adapter
        try:
            listed = await self._client.list(
                adapter.resource,
                self._namespace,
                as_=msgspec.Raw,
                field_selector=query.field_selector,
            )
        except NotFoundError:
            return None
        except ForbiddenError as error:
            if query.typed or not adapter.crd:
                role = "altershield-view" if adapter.crd else "view"
                raise self._forbidden(full_plural(adapter), error, role) from error
            # for a kind that it does not have, an API server may answer Forbidden too
            kinds = {named_kind(each.release.spec.workload_ref) for each in stored_releases}
            if adapter.resource.group_kind in kinds:
                print(f"Warning: releases of {full_plural(adapter)} are not shown: {error}", file=sys.stderr)
            return None
        return [adapter.read(item) for item in listed.items]

    def _forbidden(self, listed: str, error: ForbiddenError, role: str) -> StatusError:
        attempt = f"list {listed} {permission.place(self._namespace)}"
        return StatusError(permission.refused(attempt, error, permission.role(role, self._namespace)))


@contextlib.asynccontextmanager
async def _running(runs: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> AsyncGenerator[None, None]:
    tasks = [asyncio.create_task(run()) for run in runs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
