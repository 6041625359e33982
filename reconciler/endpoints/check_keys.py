"""The key that signs the callbacks about a check: it is in the Secret that the definition of the check names.

The definition is the copy in the ChangeWorkload of the batch. So the key always belongs to the policy that applies to
this batch: a key of another namespace, or of another check, signs nothing here. The caches show whether there is such a
check, without a request to the API server. The Secret is read for each callback, and no key is cached.
"""

import asyncio

from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_specs import HttpCheck
from kube_base.access.client import Client
from reconciler.checks.identity import CheckRun
from reconciler.cluster.caches import Caches
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.outcome import CallbackOutcome
from reconciler.endpoints.places import Places
from reconciler.outbound.outbound_errors import CredentialsError, SecretUnreadableError
from reconciler.outbound.secrets import Secrets

_AT_A_TIME = 4
_SECONDS = 5.0
_WAITING = 32  # callbacks whose Secret is read, or waits to be read
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to find a run. A fast receiver sends its callback before this replica has seen the
ChangePod."""
_EARLY = 32  # callbacks about unknown runs that wait


class CheckKeys:
    """Reads Secrets, few at a time and on connections of its own, so that callers who guess runs delay each other and
    not the reconciler. Close it."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self._client = client.with_own_connections(max_in_flight=_AT_A_TIME)
        self._secrets = Secrets(self._client)
        self._caches = caches
        self._places = Places(_WAITING, "the reconciler is busy with other callbacks; send it again")
        self._early = 0

    async def close(self) -> None:
        await self._client.close()

    async def key(self, run: CheckRun) -> bytes:
        """The key; empty if there is no such run, or its check accepts no callbacks. The caller must not learn which.

        CredentialsError: the Secret cannot be used. EndpointError (503): the key cannot be read now.
        """
        if not all(informer.synced for informer in self._caches.required):
            raise EndpointError("the caches are not filled yet; send the callback again", 503, CallbackOutcome.FAILED)
        release = await self._release(run)
        check = _definition(release, run) if release is not None else None
        if release is None or check is None or check.secret_ref is None:
            return b""
        namespace = release.spec.policy.namespace
        with self._places:
            try:
                async with asyncio.timeout(_SECONDS):
                    credentials = await self._secrets.read(namespace, check.secret_ref.name)
            except (SecretUnreadableError, TimeoutError) as error:
                message = "the API server does not answer; send the callback again"
                raise EndpointError(message, 503, CallbackOutcome.FAILED) from error
        if not credentials.hmac:
            raise CredentialsError(
                f"the Secret {namespace}/{check.secret_ref.name} has no key hmac, with which callbacks are verified"
            )
        return credentials.hmac

    async def _release(self, run: CheckRun) -> ChangeWorkload | None:
        """The release of a run; None if the caches do not have it, also after a while."""
        found = self._known_release(run)
        if found is not None or self._early >= _EARLY:
            return found
        self._early += 1
        try:
            for seconds in _PAUSES:
                await asyncio.sleep(seconds)
                found = self._known_release(run)
                if found is not None:
                    return found
        finally:
            self._early -= 1
        return None

    def _known_release(self, run: CheckRun) -> ChangeWorkload | None:
        batch = self._caches.batches.get(run.namespace, run.change_pod)
        if batch is None or batch.metadata.uid != run.uid:
            return None
        release = self._caches.releases.get(*batch.release)
        if release is None or release.metadata.uid != batch.owner.uid:
            return None
        return release


def _definition(release: ChangeWorkload, run: CheckRun) -> HttpCheck | None:
    """The check in the policy that applies to the release; None if it has no such `http` check in this phase."""
    specs = (each for each in release.spec.policy.checks if each.name == run.check and run.phase in each.phases)
    return next((each.http for each in specs), None)
