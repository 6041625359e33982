"""The steps of the check."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.releases.texts import suspended
from altershield.workloads import change_workload_name
from altershield.workloads.workload import Workload
from command.check.objects import ADAPTER, NAME, RESOURCE
from command.check.waiting import CheckFailedError, until
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError, ServerError
from kube_base.resources import SECRETS


class Steps:
    """The steps of the check, in their order."""

    def __init__(
        self, client: Client, namespace: str, manifest: dict[str, Any], secrets: Sequence[dict[str, Any]]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._manifest = manifest
        self._secrets = secrets

    @contextlib.asynccontextmanager
    async def cleaning_up(self) -> AsyncIterator[None]:
        await self._delete()  # left by an earlier check that was interrupted
        try:
            for secret in self._secrets:
                await self._client.create(SECRETS, secret, self._namespace)
            yield
        finally:
            await self._delete()

    async def admitted(self) -> str:
        """Create the workload. Returns the version that the gatekeeper gave it."""
        path = RESOURCE.path(self._namespace)

        async def stamped() -> str:
            try:
                answer = await self._client.request("POST", path, query={"dryRun": "All"}, body=self._manifest)
            except ServerError:
                return ""  # the gatekeeper does not answer yet
            return ADAPTER.read(answer).version

        version = await until(
            stamped,
            f"the API server to call the gatekeeper for {RESOURCE.plural} in {self._namespace}; check that a "
            "gatekeeper is ready, that the webhook configurations have its CA, and that the namespace has the label "
            f"{labels.GOVERNED_SELECTOR}",
        )
        await self.collected(version)  # the ChangeWorkload of an earlier check
        created = ADAPTER.read(await self._client.request("POST", path, body=self._manifest))
        if not version == created.version == created.template_version:
            raise CheckFailedError(
                f"{RESOURCE.kind} {self._namespace}/{NAME} and its template have different versions; check that no "
                f"other webhook changes the label {labels.VERSION} or the pod template"
            )
        return version

    async def verified(self, version: str) -> str:
        """Wait until the release succeeds. Returns the name of its pod."""

        async def succeeded() -> str:
            workload = await self._workload(version)
            passed = workload.status.defense_check_pass_pods if workload else ()
            success = workload is not None and workload.status.status == WorkloadState.SUCCESS
            return passed[0].pod if success and passed else ""

        return await until(
            succeeded,
            "the release to succeed; check that a reconciler is the leader, and that the pod can be created, be "
            "scheduled and pull its image, and that the AlterShield server answers in time if one is configured",
        )

    async def suspended(self, version: str) -> str:
        """Give the pod a failing verdict. Returns the Unix time since which the workload is suspended."""
        name = names.change_pod_name(_release(version), 1)
        change_pod = await self._client.get(CHANGE_PODS, name, self._namespace, as_=ChangePod)
        result = {"pod": change_pod.spec.pod_infos[0].pod, "verdict": Verdict.UNPASS, "message": "altershield check"}
        await self._client.patch(
            CHANGE_PODS, {"status": {"podResults": [result]}}, name, self._namespace, subresource="status"
        )

        async def labelled() -> str:
            return (await self._stored()).suspended

        return await until(labelled, "the release to be suspended; check that the setting `blocking` is on")

    async def denied(self) -> str:
        """Release another template. Returns the text of the denial."""
        change = {"spec": {"template": {"metadata": {"annotations": {"altershield-check": "denied"}}}}}
        wanted = suspended(RESOURCE.kind.lower(), NAME)
        try:
            await self._client.patch(RESOURCE, change, NAME, self._namespace)
        except ForbiddenError as error:
            if error.reason == wanted:
                return str(error)
            raise
        raise CheckFailedError(
            f"{wanted}, but its next release was admitted; check that the ValidatingWebhookConfiguration of "
            "AlterShield has a webhook for it"
        )

    async def collected(self, version: str) -> None:
        """Wait until the garbage collector deletes the ChangeWorkload of `version`."""

        async def gone() -> bool:
            return await self._workload(version) is None

        await until(
            gone,
            f"the ChangeWorkload {self._namespace}/{_release(version)} to be deleted; check that the garbage collector "
            "of the cluster runs",
        )

    async def _workload(self, version: str) -> ChangeWorkload | None:
        try:
            return await self._client.get(CHANGE_WORKLOADS, _release(version), self._namespace, as_=ChangeWorkload)
        except NotFoundError:
            return None

    async def _stored(self) -> Workload:
        return ADAPTER.read(await self._client.request("GET", RESOURCE.path(self._namespace, NAME)))

    async def _delete(self) -> None:
        """Delete the Secrets and the workload, and wait until the workload and its pod are deleted."""

        async def gone() -> bool:
            try:
                await self._stored()
            except NotFoundError:
                return True
            return False

        for secret in self._secrets:  # first, because the rest may take longer than the time for a cleanup
            with contextlib.suppress(NotFoundError):
                await self._client.delete(SECRETS, secret["metadata"]["name"], self._namespace)
        with contextlib.suppress(NotFoundError):
            await self._client.delete(RESOURCE, NAME, self._namespace, propagation="Foreground")
            await until(gone, f"{RESOURCE.kind} {self._namespace}/{NAME} to be deleted")


def _release(version: str) -> str:
    return change_workload_name(RESOURCE.group_kind, NAME, version)
