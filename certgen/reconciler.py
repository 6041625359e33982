"""From the plan to the cluster: reads, writes, publishes, hands the files over; again whenever something changes.

Any number of replicas do the same at once. Whoever writes first wins, the others read again and find nothing to do.
"""

import asyncio
import contextlib
import datetime
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography import x509

from altershield.api.meta import ObjectMeta
from altershield.api.resources import SECRETS, Resource
from altershield.kube.backoff import delay
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, KubernetesError
from altershield.kube.informer import Informer
from certgen import files, publications, secret
from certgen.certificates import Leaf
from certgen.contents import Contents, decode, encode
from certgen.errors import CertificateError
from certgen.metrics import Metrics
from certgen.ownership import Place, adopt, end_with
from certgen.plan import Reason, plan
from certgen.provided import Provided, check
from certgen.publications import Publication
from certgen.secret import Secret
from certgen.settings import Mode, Settings

logger = logging.getLogger(__name__)

_LONGEST_WAIT = datetime.timedelta(hours=1)  # clocks are set, machines sleep; looking costs next to nothing
_RETRY = datetime.timedelta(minutes=1)  # of what is refused: that a certificate begins to be valid is told by no event
_PAUSE = 1.0  # seconds after a write: who fights over the bundles with us is held to one round per second
_PATIENCE = datetime.timedelta(seconds=60)  # beyond the settling time, for commands that wait


class _Webhook(msgspec.Struct):
    """Only counted."""


class _Followed(msgspec.Struct):
    """All that a cache keeps of what only has to be noticed: no key stays in memory."""

    metadata: ObjectMeta
    webhooks: list[_Webhook] | None = None


@dataclass(frozen=True)
class Found:
    """The cluster as it was read: the publications first, which the plan relies on."""

    publications: list[Publication]
    secret: Secret | None
    contents: Contents
    """Understood as certgen's own; empty where the Secret is not."""
    problems: list[str]

    @property
    def is_foreign(self) -> bool:
        """Whether there is a Secret that somebody else made."""
        return self.secret is not None and not self.secret.is_ours


@dataclass(frozen=True)
class Outcome:
    """What one pass left behind. Without `leaf` there is nothing yet that can be served."""

    leaf: Leaf | None
    contents: Contents
    again: datetime.datetime
    wrote: bool
    distrust: str = ""
    """Why API servers will refuse `leaf`, because of what others publish; empty: they will not."""


class CertificateReconciler:
    """Keeps Secret, bundles and files as `settings` want them."""

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
        self._changed = asyncio.Event()
        self.informers = (
            self._followed(SECRETS, settings.secret, settings.system_namespace),
            *(self._followed(resource, settings.webhook_configuration, "") for resource in publications.KINDS),
        )
        """What `run` follows."""

    @property
    def missing(self) -> str:
        """Why this pod is not to get requests; empty: it is.

        A pod whose certificate was never trusted must not replace one that is. Trust that is lost later, or cannot be
        looked at, takes no pod out: all would go at once, and none come back before the cause is mended. Webhook
        configurations that do not exist are not waited for: GitOps tools create them once the pods are ready, and
        somebody may have deleted them in an emergency, in which pods must still be able to start.
        """
        if self._serving is None:
            return f"there is no usable certificate yet: {self._reported or 'starting'}"
        if not self._trusted:
            return f"API servers do not trust the certificate yet: {self._reported or 'it is being published'}"
        return "the serving certificate has expired" if self._serving.expires <= self.now() else ""

    async def run(self) -> None:
        """Keep everything right, whatever happens to it, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run())
            if self._owner:
                configurations = [place for place in self._owned if place[0] in publications.KINDS]
                group.create_task(end_with(self._client, self.settings.system_namespace, configurations))
            failures = 0
            while True:
                self._changed.clear()
                try:
                    outcome = await self.keep()
                    failures = 0
                    if outcome.wrote:
                        await asyncio.sleep(_PAUSE)
                    await self._wait(outcome.again)
                except ConflictError as error:  # another replica was faster
                    await asyncio.sleep(delay(1, error))
                except CertificateError as error:
                    self._report(str(error))
                    await self._wait(self.now() + _RETRY)
                except KubernetesError as error:
                    failures += 1
                    self._report(str(error))
                    await asyncio.sleep(delay(failures, error))

    async def ensure(self) -> Outcome:
        """Make everything right once, waiting for what needs waiting. CertificateError where that takes too long,
        or where the Secret is not ours to heal."""
        return await self.until(lambda outcome: outcome.leaf is not None)

    async def find(self) -> Found:
        """Read the cluster."""
        published = await publications.read(self._client, self.settings.webhook_configuration)
        stored = await secret.read(self._client, self.settings.secret, self.settings.system_namespace)
        if stored is None:
            return Found(published, None, Contents(), ["it does not exist"])
        if not stored.is_ours:
            return Found(published, stored, Contents(), ["certgen did not make it"])
        return Found(published, stored, *decode(stored.data or {}))

    async def keep(self) -> Outcome:
        """One pass: plan, store, hand over, publish. ConflictError where another replica was faster."""
        found = await self.find()
        outcome = await (self._make(found) if self.settings.mode is Mode.CERTGEN else self._use(found))
        if self._owner:
            await adopt(self._client, self._owned, self._owner)
        if outcome.distrust:
            raise CertificateError(outcome.distrust)
        self._report("")
        return outcome

    @property
    def _owned(self) -> list[Place]:
        owned: list[Place] = [(resource, "", self.settings.webhook_configuration) for resource in publications.KINDS]
        if self.settings.mode is Mode.CERTGEN:
            owned.append((SECRETS, self.settings.system_namespace, self.settings.secret))
        return owned

    async def _make(self, found: Found) -> Outcome:
        """Our own: planned, stored, handed over, published."""
        now = self.now()
        planned = plan(
            found.contents,
            found.publications,
            hosts=self.settings.hosts,
            lifetimes=self.settings.lifetimes,
            now=now,
        )
        damaged = found.secret is not None and not encode(planned.contents).items() <= (found.secret.data or {}).items()
        reasons = planned.reasons or ((Reason.DAMAGED,) if damaged else ())
        if reasons:
            await self.store(found, planned.contents, reasons)
        self._hand_over(planned.contents.serving, planned.contents.issuer)
        published = await self._publish(found.publications, planned.contents.bundle, planned.contents.serving)
        return Outcome(planned.contents.serving, planned.contents, planned.again, bool(reasons) or published)

    def check(self, found: Found) -> None:
        """CertificateError where the Secret cannot be used as it was found."""
        if self.settings.mode is not Mode.CERTGEN:
            provided = self._provided(found)
            if not self._publishes(provided) and (distrust := provided.distrust(found.publications, self.now())):
                raise CertificateError(distrust)
        elif found.is_foreign:
            raise CertificateError(
                f"certgen did not make the Secret {self.settings.secret}: if it is provided, say so with --mode; if "
                "not, `ensure` replaces it"
            )
        elif found.problems:
            raise CertificateError(
                f"the Secret {self.settings.secret} cannot be used, {found.problems[0]}; `ensure` puts it right"
            )

    def _provided(self, found: Found) -> Provided:
        """What others provided. CertificateError where it cannot be used."""
        if found.secret is None:
            raise CertificateError(
                f"the Secret {self.settings.secret} does not exist in {self.settings.system_namespace}; create it, or "
                f"have its provider ({self.settings.mode}) do so"
            )
        return check(found.secret.data or {}, secret=self.settings.secret, hosts=self.settings.hosts, now=self.now())

    async def _use(self, found: Found) -> Outcome:
        """What others provide: checked, handed over, published where nobody else does."""
        provided = self._provided(found)
        authority = provided.ends_first(found.publications, self.now())
        published, distrust = False, ""
        if self._publishes(provided):
            self._hand_over(provided.leaf, authority)
            published = await self._publish(found.publications, provided.bundle, provided.leaf)
        else:
            distrust = provided.distrust(found.publications, self.now())
            if distrust and self._serves_well(found.publications):
                self._metrics.stored(provided.leaf.certificate, authority)  # it is taken once it is trusted
            else:
                self._hand_over(provided.leaf, authority)
            self._trusted = self._trusted or not distrust
        again = min(provided.leaf.expires, authority.not_valid_after_utc) if authority else provided.leaf.expires
        return Outcome(provided.leaf, Contents(), again, published, distrust)

    def _serves_well(self, found: Sequence[Publication]) -> bool:
        """Whether API servers trust what the gatekeeper has."""
        leaf, now = self._serving, self.now()
        if leaf is None or leaf.expires <= now:
            return False
        return all(publication.path(leaf.chain, now) for publication in found)

    def _publishes(self, provided: Provided) -> bool:
        """Whether it is certgen that publishes the CA of what is provided."""
        return self.settings.mode is Mode.SECRET and bool(provided.bundle)

    async def store(self, found: Found, contents: Contents, reasons: Sequence[Reason]) -> None:
        await secret.write(
            self._client, self.settings.secret, self.settings.system_namespace, found.secret, encode(contents)
        )
        for reason in reasons:
            self._metrics.wrote(reason)
        logger.log(
            logging.WARNING if found.problems and found.secret else logging.INFO,
            "wrote the certificates",
            extra={
                "namespace": self.settings.system_namespace,
                "secret": self.settings.secret,
                "why": list(reasons),
                "problems": found.problems,
                "expires": contents.leaf.expires.isoformat() if contents.leaf else "",
                "authorities": len(contents.trusted),
            },
        )

    def _hand_over(self, leaf: Leaf | None, issuer: x509.Certificate | None) -> None:
        self._metrics.stored(leaf.certificate if leaf else None, issuer)
        if leaf is None:
            return  # the gatekeeper goes on with the one it has
        if self._directory and files.write(self._directory, leaf.pair):
            logger.info("handed over a serving certificate", extra={"expires": leaf.expires.isoformat()})
        self._serving = leaf

    async def _publish(self, found: Sequence[Publication], bundle: bytes, leaf: Leaf | None) -> bool:
        """Bring the configurations up to date, each as far as it goes; whether any was changed. From then on `leaf`
        is trusted, if it was not before."""
        failed: KubernetesError | None = None
        outdated = [publication for publication in found if not publication.is_of(bundle)]
        for publication in outdated:
            try:
                await publications.publish(self._client, publication, bundle)
            except KubernetesError as error:
                failed = failed or error
                continue
            kind = publication.resource.kind
            self._metrics.published(kind)
            logger.info("published the CAs", extra={"kind": kind, "configuration": publication.name})
        if leaf and not self._trusted:
            now = self.now()
            self._trusted = not failed or all(publication.path(leaf.chain, now) for publication in found)
        if failed:
            raise failed
        return bool(outdated)

    async def until(self, done: Callable[[Outcome], bool]) -> Outcome:
        try:
            async with asyncio.timeout((self.settings.lifetimes.settle + _PATIENCE).total_seconds()):
                while True:
                    try:
                        outcome = await self.keep()
                    except ConflictError as error:  # another replica was faster
                        await asyncio.sleep(delay(1, error))
                        continue
                    if done(outcome):
                        return outcome
                    wait = min(outcome.again - self.now(), self.settings.lifetimes.settle)
                    await asyncio.sleep(max(_PAUSE, wait.total_seconds()))
        except TimeoutError:
            raise CertificateError(
                f"the Secret {self.settings.secret} or its webhook configurations are changed by somebody else all "
                "the time; find out who writes them"
            ) from None

    def _followed(self, resource: Resource, name: str, namespace: str) -> Informer[_Followed]:
        def changed(_old: _Followed | None, new: _Followed | None) -> None:
            self._changed.set()
            if resource in publications.KINDS:
                self._metrics.webhooks(resource, len(new.webhooks or ()) if new else 0)

        informer = Informer(
            self._client, resource, _Followed, namespace=namespace, field_selector=f"metadata.name={name}", resync=0
        )
        informer.add_handler(changed)
        return informer

    async def _wait(self, until: datetime.datetime) -> None:
        seconds = (min(until - self.now(), _LONGEST_WAIT)).total_seconds()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, seconds)):
                await self._changed.wait()

    def _report(self, problem: str) -> None:
        """Say it once, and once that it is over."""
        self._metrics.usable(not problem)
        if problem and problem != self._reported:
            logger.error("the certificate cannot be kept", extra={"secret": self.settings.secret, "cause": problem})
        elif self._reported and not problem:
            logger.info("the certificate is in order again", extra={"secret": self.settings.secret})
        self._reported = problem
