"""Reconciles the Secret, the webhook configurations and the files whenever something changes.

All replicas do this at the same time. The first write succeeds; the other replicas get a conflict and read again.
"""

import asyncio
import datetime
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from certgen import files, secret, webhook_configurations
from certgen.certificates import Leaf
from certgen.changes import Changes
from certgen.cluster_state import ClusterState, read
from certgen.contents import Contents, encode
from certgen.errors import CertificateError
from certgen.garbage_collection import ObjectKey, delete_with_namespace, set_owner
from certgen.metrics import Metrics
from certgen.plan import Reason, plan
from certgen.provided import Provided, check
from certgen.settings import Mode, Settings
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.access.backoff import delay
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, KubernetesError
from kube_base.resources import SECRETS
from kube_base.times import rfc3339

logger = logging.getLogger(__name__)

_RETRY = datetime.timedelta(minutes=1)  # after a CertificateError: no event tells that a certificate becomes valid
_PAUSE = 1.0  # seconds after a write: limits a fight with another writer to one write per second
_EXTRA_TIME = datetime.timedelta(seconds=60)  # in addition to the settling time, for commands that wait


@dataclass(frozen=True)
class Outcome:
    """The result of one `reconcile`. `leaf` is None if there is no certificate that can be served yet."""

    leaf: Leaf | None
    contents: Contents
    requeue_at: datetime.datetime
    wrote: bool
    untrusted_reason: str = ""
    """Why API servers will not trust `leaf`, if others publish the CA; empty if they will."""


class CertificateReconciler:
    """Reconciles the Secret, the bundles and the files with `settings`."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        metrics: Metrics | None = None,
        clock: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        *,
        directory: Path | None = None,
        owner: str = "",
    ) -> None:
        self._client = client
        self.settings = settings
        self._metrics = metrics or Metrics()
        self._directory = directory
        self._owner = owner
        self.now = clock
        self._reported = ""
        self._serving: Leaf | None = None
        self._trusted = False
        self.changes = Changes(client, settings, self._metrics)

    @property
    def not_ready(self) -> str:
        """Why this pod is not ready; empty if it is.

        A pod must not replace another one as long as API servers do not trust its certificate. If they stop trusting it
        later, or if that cannot be checked, the pod stays ready: otherwise all pods would become unready at once, until
        the cause is repaired. A missing webhook configuration does not matter: GitOps tools create it when the pods are
        ready, and if somebody deletes it in an emergency, pods must still be able to start.
        """
        if self._serving is None:
            return f"there is no usable certificate yet: {self._reported or 'starting'}"
        if not self._trusted:
            return f"API servers do not trust the certificate yet: {self._reported or 'its CA is being published'}"
        return "the serving certificate has expired" if self._serving.expires <= self.now() else ""

    async def run(self) -> None:
        """Reconcile after every change, and when certificates are due, until cancelled. Errors are retried."""
        async with asyncio.TaskGroup() as group:
            for informer in self.changes.informers:
                group.create_task(informer.run())
            if self._owner:
                configurations = [key for key in self._owned if key[0] in webhook_configurations.KINDS]
                group.create_task(delete_with_namespace(self._client, self.settings.system_namespace, configurations))
            failures = 0
            while True:
                self.changes.clear()
                try:
                    outcome = await self.reconcile()
                    failures = 0
                    if outcome.wrote:
                        await asyncio.sleep(_PAUSE)
                    await self.changes.wait(outcome.requeue_at - self.now())
                except ConflictError as error:  # another replica was faster
                    await asyncio.sleep(delay(1, error))
                except CertificateError as error:
                    self._report(str(error))
                    await self.changes.wait(_RETRY)
                except KubernetesError as error:
                    failures += 1
                    self._report(str(error))
                    await asyncio.sleep(delay(failures, error))

    async def ensure(self) -> Outcome:
        """Reconcile until there is a usable certificate. CertificateError if that takes too long, or if others provide
        the Secret and it cannot be used."""
        return await self.reconcile_until(lambda outcome: outcome.leaf is not None)

    async def read_cluster(self) -> ClusterState:
        """Read the webhook configurations and the Secret."""
        return await read(self._client, self.settings)

    async def reconcile(self) -> Outcome:
        """Plan, write the Secret, write the files and publish, once. ConflictError if another replica was faster."""
        state = await self.read_cluster()
        outcome = await (
            self._reconcile_own(state) if self.settings.mode is Mode.CERTGEN else self._reconcile_provided(state)
        )
        if self._owner:
            await set_owner(self._client, self._owned, self._owner)
        if outcome.untrusted_reason:
            raise CertificateError(outcome.untrusted_reason)
        self._report("")
        return outcome

    @property
    def _owned(self) -> list[ObjectKey]:
        owned: list[ObjectKey] = [
            (resource, "", self.settings.webhook_configuration) for resource in webhook_configurations.KINDS
        ]
        if self.settings.mode is Mode.CERTGEN:
            owned.append((SECRETS, self.settings.system_namespace, self.settings.secret))
        return owned

    async def _reconcile_own(self, state: ClusterState) -> Outcome:
        """Reconcile the Secret that certgen creates."""
        now = self.now()
        planned = plan(
            state.contents,
            state.configurations,
            hosts=self.settings.hosts,
            lifetimes=self.settings.lifetimes,
            now=now,
        )
        damaged = state.secret is not None and not encode(planned.contents).items() <= (state.secret.data or {}).items()
        reasons = planned.reasons or ((Reason.DAMAGED,) if damaged else ())
        if reasons:
            await self.store(state, planned.contents, reasons)
        self._write_files(planned.contents.serving, planned.contents.issuer)
        published = await self._publish(state.configurations, planned.contents.bundle, planned.contents.serving)
        return Outcome(planned.contents.serving, planned.contents, planned.requeue_at, bool(reasons) or published)

    def check(self, state: ClusterState) -> None:
        """CertificateError if the Secret, as it was read, cannot be used."""
        if self.settings.mode is not Mode.CERTGEN:
            provided = self._provided(state)
            if not self._publishes(provided) and (
                untrusted_reason := provided.untrusted_reason(state.configurations, self.now())
            ):
                raise CertificateError(untrusted_reason)
        elif state.is_foreign:
            raise CertificateError(
                f"certgen did not create the Secret {self.settings.secret}: if others provide it, set --mode; if not, "
                "`ensure` replaces it"
            )
        elif state.problems:
            raise CertificateError(
                f"the Secret {self.settings.secret} cannot be used: {state.problems[0]}; `ensure` repairs it"
            )

    def _provided(self, state: ClusterState) -> Provided:
        """The certificates that others provide. CertificateError if they cannot be used."""
        if state.secret is None:
            raise CertificateError(
                f"the Secret {self.settings.secret} does not exist in {self.settings.system_namespace}; create it, or "
                f"let its provider ({self.settings.mode}) create it"
            )
        return check(state.secret.data or {}, secret=self.settings.secret, hosts=self.settings.hosts, now=self.now())

    async def _reconcile_provided(self, state: ClusterState) -> Outcome:
        """Check the Secret that others provide, write the files, and publish the CA if nobody else does."""
        provided = self._provided(state)
        authority = provided.first_to_expire(state.configurations, self.now())
        published, untrusted_reason = False, ""
        if self._publishes(provided):
            self._write_files(provided.leaf, authority)
            published = await self._publish(state.configurations, provided.bundle, provided.leaf)
        else:
            untrusted_reason = provided.untrusted_reason(state.configurations, self.now())
            if untrusted_reason and self._serves_trusted_certificate(state.configurations):
                self._metrics.stored(provided.leaf.certificate, authority)  # the files are written when it is trusted
            else:
                self._write_files(provided.leaf, authority)
            self._trusted = self._trusted or not untrusted_reason
        requeue_at = min(provided.leaf.expires, authority.not_valid_after_utc) if authority else provided.leaf.expires
        return Outcome(provided.leaf, Contents(), requeue_at, published, untrusted_reason)

    def _serves_trusted_certificate(self, configurations: Sequence[WebhookConfiguration]) -> bool:
        """Whether API servers trust the certificate that the gatekeeper serves."""
        leaf, now = self._serving, self.now()
        if leaf is None or leaf.expires <= now:
            return False
        return all(configuration.path(leaf.chain, now) for configuration in configurations)

    def _publishes(self, provided: Provided) -> bool:
        """Whether certgen publishes the CA of a provided certificate."""
        return self.settings.mode is Mode.SECRET and bool(provided.bundle)

    async def store(self, state: ClusterState, contents: Contents, reasons: Sequence[Reason]) -> None:
        await secret.write(
            self._client, self.settings.secret, self.settings.system_namespace, state.secret, encode(contents)
        )
        for reason in reasons:
            self._metrics.wrote(reason)
        logger.log(
            logging.WARNING if state.problems and state.secret else logging.INFO,
            "wrote the Secret",
            extra={
                "namespace": self.settings.system_namespace,
                "secret": self.settings.secret,
                "why": list(reasons),
                "problems": state.problems,
                "expires": rfc3339(contents.leaf.expires.timestamp()) if contents.leaf else "",
                "authorities": len(contents.trusted),
            },
        )

    def _write_files(self, leaf: Leaf | None, issuer: x509.Certificate | None) -> None:
        self._metrics.stored(leaf.certificate if leaf else None, issuer)
        if leaf is None:
            return  # the gatekeeper keeps serving the certificate it has
        if self._directory and files.write(self._directory, leaf.pair):
            logger.info("wrote the serving certificate to files", extra={"expires": rfc3339(leaf.expires.timestamp())})
        self._serving = leaf

    async def _publish(self, configurations: Sequence[WebhookConfiguration], bundle: bytes, leaf: Leaf | None) -> bool:
        """Write `bundle` into the configurations. Return whether any changed. A failure does not prevent the others,
        and is raised in the end. If API servers trust `leaf` then, the pod can become ready."""
        failed: KubernetesError | None = None
        outdated = [configuration for configuration in configurations if not configuration.is_current(bundle)]
        for configuration in outdated:
            try:
                await webhook_configurations.publish(self._client, configuration, bundle)
            except KubernetesError as error:
                failed = failed or error
                continue
            kind = configuration.resource.kind
            self._metrics.published(kind)
            logger.info(
                "wrote the CAs to the webhook configuration", extra={"kind": kind, "configuration": configuration.name}
            )
        if leaf and not self._trusted:
            now = self.now()
            self._trusted = not failed or all(configuration.path(leaf.chain, now) for configuration in configurations)
        if failed:
            raise failed
        return bool(outdated)

    async def reconcile_until(self, done: Callable[[Outcome], bool]) -> Outcome:
        """Reconcile until `done(outcome)`. CertificateError after the settling time and another minute."""
        try:
            async with asyncio.timeout((self.settings.lifetimes.settle + _EXTRA_TIME).total_seconds()):
                while True:
                    try:
                        outcome = await self.reconcile()
                    except ConflictError as error:  # another replica was faster
                        await asyncio.sleep(delay(1, error))
                        continue
                    if done(outcome):
                        return outcome
                    wait = min(outcome.requeue_at - self.now(), self.settings.lifetimes.settle)
                    await asyncio.sleep(max(_PAUSE, wait.total_seconds()))
        except TimeoutError:
            raise CertificateError(
                f"another client keeps changing the Secret {self.settings.secret} or the webhook configurations; find "
                "out which one, for example in their managedFields"
            ) from None

    def _report(self, problem: str) -> None:
        """Log a problem once, and log once that it is over."""
        self._metrics.usable(not problem)
        if problem and problem != self._reported:
            logger.error("cannot reconcile the certificate", extra={"secret": self.settings.secret, "cause": problem})
        elif self._reported and not problem:
            logger.info("the certificate is reconciled again", extra={"secret": self.settings.secret})
        self._reported = problem
