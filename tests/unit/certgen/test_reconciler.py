"""The reconciler on a Kubernetes API: its writes, crashes, changes by others, and its RBAC rules."""

import asyncio
import base64
import contextlib
import datetime
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from altershield.api.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    VALIDATING_WEBHOOKS,
)
from altershield.install.webhooks import configurations
from altershield.kube import credentials
from altershield.kube.client import Client
from altershield.kube.errors import ForbiddenError, KubernetesError, NotFoundError
from altershield.pki import Authority
from altershield.workloads import ADAPTERS
from certgen import certificates
from certgen.contents import Contents, decode, encode
from certgen.errors import CertificateError
from certgen.lifetimes import Lifetimes
from certgen.metrics import Metrics
from certgen.plan import new_authority
from certgen.reconciler import CertificateReconciler
from certgen.rotation import renew_leaf, replace_authority
from certgen.settings import Mode, Settings
from certgen.webhook_configurations import KINDS
from kube_sandbox.apiserver.server import ApiServer
from tests.support.polling import until

NAMESPACE, SECRET, CONFIGURATION = "system", "altershield-tls", "altershield"
HOST = "altershield.system.svc"
DAY = datetime.timedelta(days=1)
LIFETIMES = Lifetimes(authority=9 * DAY, leaf=3 * DAY, settle=datetime.timedelta(seconds=0.5))


def settings_of(mode: Mode = Mode.CERTGEN, namespace: str = NAMESPACE) -> Settings:
    lifetimes = (LIFETIMES.authority, LIFETIMES.leaf, LIFETIMES.settle)
    ca_lifetime, leaf_lifetime, settle = (each.total_seconds() for each in lifetimes)
    return Settings(
        system_namespace=namespace,
        secret=SECRET,
        webhook_configuration=CONFIGURATION,
        san=[HOST],
        mode=mode,
        ca_lifetime=ca_lifetime,
        leaf_lifetime=leaf_lifetime,
        settle=settle,
    )


SETTINGS = settings_of()

# The rules that the service account needs. The chart must grant them.
NAMESPACE_RULES = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [SECRET],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
]
CLUSTER_RULES = [
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [CONFIGURATION],
        "verbs": ["get", "list", "watch", "patch"],
    },
]

EXPIRY = "altershield_stored_certificate_expiry_timestamp_seconds"

Json = dict[str, Any]


@dataclass(frozen=True)
class Api:
    server: ApiServer
    directory: Path

    async def connect(self, user: str = "", as_: type[Client] = Client) -> Client:
        """A client with the credentials of the administrator, or of `user`."""
        kubeconfig = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        kubeconfig.write_text(self.server.kubeconfig(self.server.add_token(user) if user else None))
        return as_((await credentials.load(str(kubeconfig), None)).configuration)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """An API server with the webhook configurations of an installation, which have no bundle yet."""
    async with ApiServer() as server:
        api = Api(server, tmp_path)
        async with await api.connect() as client:
            await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            for resource, obj in zip(KINDS, installed(), strict=True):
                await client.create(resource, obj)
        yield api


def installed() -> list[Json]:
    return configurations(CONFIGURATION, f"https://{HOST}:443", b"", system_namespace=NAMESPACE)


@pytest.fixture
async def client(api: Api) -> AsyncIterator[Client]:
    async with await api.connect() as client:
        yield client


async def stored(client: Client) -> Contents:
    contents, problems = decode((await client.get(SECRETS, SECRET, NAMESPACE))["data"])
    assert problems == []
    return contents


async def bundles(client: Client) -> set[bytes]:
    found = set()
    for resource in KINDS:
        for webhook in (await client.get(resource, CONFIGURATION))["webhooks"]:
            found.add(base64.b64decode(webhook["clientConfig"].get("caBundle", "")))
    return found


async def reconciled(client: Client) -> bool:
    """Whether the certificate is signed and all webhooks have the bundle."""
    contents = await stored(client)
    return contents.serving is not None and await bundles(client) == {contents.bundle}


async def eventually(met: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `met`; errors of the API server and failed assertions count as not met."""

    async def tolerant() -> bool:
        with contextlib.suppress(KubernetesError, AssertionError):
            return await met()
        return False

    await until(tolerant, seconds=20)


@contextlib.asynccontextmanager
async def running(reconciler: CertificateReconciler) -> AsyncIterator[None]:
    task = asyncio.create_task(reconciler.run())
    try:
        yield
        assert not task.done(), "the reconciler ended"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_ensure_creates_the_secret_and_publishes_the_ca(client: Client) -> None:
    before = {resource: await client.get(resource, CONFIGURATION) for resource in KINDS}
    await CertificateReconciler(client, SETTINGS).ensure()
    secret = await client.get(SECRETS, SECRET, NAMESPACE)
    assert secret["type"] == "kubernetes.io/tls"
    assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "altershield-certgen"
    assert await reconciled(client)
    for resource in KINDS:
        after = await client.get(resource, CONFIGURATION)
        ours = [each for each in after["metadata"]["managedFields"] if each["manager"] == "altershield-certgen"]
        fields = json.dumps(ours[0]["fieldsV1"])
        assert "f:caBundle" in fields
        assert "f:rules" not in fields
        for webhook in after["webhooks"]:
            webhook["clientConfig"].pop("caBundle")
        for webhook in before[resource]["webhooks"]:
            webhook["clientConfig"].pop("caBundle", None)
        assert after["webhooks"] == before[resource]["webhooks"]


async def test_second_reconcile_writes_nothing(client: Client) -> None:
    await CertificateReconciler(client, SETTINGS).ensure()
    secret = await client.get(SECRETS, SECRET, NAMESPACE)
    assert not (await CertificateReconciler(client, SETTINGS).reconcile()).wrote
    assert await client.get(SECRETS, SECRET, NAMESPACE) == secret


async def test_concurrent_replicas_end_with_one_ca(client: Client) -> None:
    await asyncio.gather(*(CertificateReconciler(client, SETTINGS).ensure() for _ in range(8)))
    assert len((await stored(client)).trusted) == 1
    assert await reconciled(client)


async def test_missing_namespace_is_reported(client: Client) -> None:
    settings = settings_of(namespace="nowhere")
    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        await CertificateReconciler(client, settings).ensure()


async def test_renew_leaf_replaces_the_certificate_under_the_same_ca(client: Client) -> None:
    reconciler = CertificateReconciler(client, SETTINGS)
    await reconciler.ensure()
    before = await stored(client)
    await renew_leaf(reconciler)
    after = await stored(client)
    assert after.trusted == before.trusted
    assert after.leaf != before.leaf
    assert await reconciled(client)


async def test_replace_authority_replaces_the_ca(client: Client) -> None:
    reconciler = CertificateReconciler(client, SETTINGS)
    await reconciler.ensure()
    [old] = (await stored(client)).trusted
    await asyncio.gather(replace_authority(reconciler), CertificateReconciler(client, SETTINGS).ensure())
    after = await stored(client)
    assert after.issuer == after.trusted[0] != old
    assert after.trusted[1:] == (old,)
    assert await reconciled(client)
    await replace_authority(reconciler, distrust=True)
    last = await stored(client)
    assert len(last.trusted) == 1
    assert last.trusted[0] not in after.trusted
    assert await reconciled(client)


async def test_overwritten_bundle_is_restored(client: Client) -> None:
    metrics = Metrics()
    async with running(CertificateReconciler(client, SETTINGS, metrics)):
        await eventually(lambda: reconciled(client))
        for resource in KINDS:
            patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "bm9uc2Vuc2U="}]
            await client.request(
                "PATCH", resource.path("", CONFIGURATION), body=patch, content_type="application/json-patch+json"
            )
        await eventually(lambda: reconciled(client))
    text = generate_latest(metrics.registry).decode()
    assert 'altershield_ca_bundle_writes_total{kind="MutatingWebhookConfiguration"} 2.0' in text


async def test_configuration_that_is_created_later_gets_the_bundle(client: Client) -> None:
    async with running(CertificateReconciler(client, SETTINGS)):
        await eventually(lambda: reconciled(client))
        await client.delete(VALIDATING_WEBHOOKS, CONFIGURATION)
        await client.create(VALIDATING_WEBHOOKS, installed()[1])
        await eventually(lambda: reconciled(client))


async def test_deleted_secret_is_created_again_and_the_served_certificate_stays_trusted(client: Client) -> None:
    async with running(CertificateReconciler(client, SETTINGS)):
        await eventually(lambda: reconciled(client))
        old = (await stored(client)).trusted
        await client.delete(SECRETS, SECRET, NAMESPACE)
        await eventually(lambda: reconciled(client))
        contents = await stored(client)
        assert contents.trusted[1:] == old
        assert contents.issuer == contents.trusted[0]


FOREIGN: Json = {"type": "Opaque", "data": {"password": "c2VjcmV0", "tls.crt": "eA=="}}
IMMUTABLE: Json = {"type": "kubernetes.io/tls", "immutable": True, "data": {"tls.crt": "", "tls.key": ""}}


@pytest.mark.parametrize("content", [FOREIGN, IMMUTABLE], ids=["foreign", "immutable"])
async def test_secret_that_certgen_did_not_create_is_replaced_and_reported(
    client: Client, content: Json, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(SECRETS, {"metadata": {"name": SECRET}, **content}, NAMESPACE)
    with caplog.at_level(logging.WARNING):
        await CertificateReconciler(client, SETTINGS).ensure()
    assert await reconciled(client)
    [record] = caplog.records
    assert record.__dict__["problems"] == ["certgen did not create it"]


async def test_rotation_of_a_secret_that_certgen_did_not_create_is_refused(client: Client) -> None:
    await client.create(SECRETS, {"metadata": {"name": SECRET}, **FOREIGN}, NAMESPACE)
    before = await client.get(SECRETS, SECRET, NAMESPACE)
    reconciler = CertificateReconciler(client, SETTINGS)
    for renewal in (renew_leaf, replace_authority):
        with pytest.raises(CertificateError, match="its provider has to renew it"):
            await renewal(reconciler)
    with pytest.raises(CertificateError, match="if others provide it, set --mode"):
        reconciler.check(await reconciler.read_cluster())
    assert await client.get(SECRETS, SECRET, NAMESPACE) == before


class KilledError(Exception):
    """The process was killed."""


class MortalClient(Client):
    """A client that raises KilledError before or after its n-th write."""

    writes_left = 1000
    answered = True

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method == "GET":
            return await super().request(method, path, **options)
        self.writes_left -= 1
        if self.writes_left == 0 and self.answered:
            await super().request(method, path, **options)
        if self.writes_left <= 0:
            raise KilledError
        return await super().request(method, path, **options)


async def nothing(client: Client) -> None:
    """No Secret exists."""


async def new_ca(client: Client) -> None:
    """A new CA was requested and is not published yet."""
    await CertificateReconciler(client, SETTINGS).ensure()
    contents = new_authority(await stored(client), LIFETIMES, datetime.datetime.now(datetime.UTC))
    await client.patch(SECRETS, {"data": encode(contents)}, SECRET, NAMESPACE)


async def lost(client: Client) -> None:
    """The Secret was deleted."""
    await CertificateReconciler(client, SETTINGS).ensure()
    await client.delete(SECRETS, SECRET, NAMESPACE)


@pytest.mark.parametrize("answered", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("write", [1, 2, 3, 4])
@pytest.mark.parametrize(("begin", "authorities"), [(nothing, 1), (new_ca, 2), (lost, 2)])
async def test_result_is_the_same_if_the_process_is_killed_at_any_write(
    api: Api,
    client: Client,
    begin: Callable[[Client], Awaitable[None]],
    authorities: int,
    write: int,
    answered: bool,
) -> None:
    await begin(client)
    async with await api.connect(as_=MortalClient) as killed_client:
        assert isinstance(killed_client, MortalClient)
        killed_client.writes_left, killed_client.answered = write, answered
        with contextlib.suppress(KilledError):
            await CertificateReconciler(killed_client, SETTINGS).ensure()
    async with running(CertificateReconciler(client, SETTINGS)):

        async def done() -> bool:
            contents = await stored(client)
            return await reconciled(client) and contents.issuer == contents.trusted[0]

        await eventually(done)
    contents = await stored(client)
    assert len(contents.authorities) == 1
    # if the process is killed before its first write, no CA has to be recovered
    assert len(contents.trusted) == authorities


async def test_service_account_needs_exactly_these_rbac_rules(api: Api, client: Client) -> None:
    user = f"system:serviceaccount:{NAMESPACE}:altershield"
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    for role, binding, namespace, rules in (
        (ROLES, ROLE_BINDINGS, NAMESPACE, NAMESPACE_RULES),
        (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, "", CLUSTER_RULES),
    ):
        await client.create(role, {"metadata": {"name": "certgen"}, "rules": rules}, namespace)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role.kind, "name": "certgen"}
        grant = {"metadata": {"name": "certgen"}, "roleRef": reference, "subjects": [subject]}
        await client.create(binding, grant, namespace)
    async with await api.connect(user) as restricted:
        async with running(CertificateReconciler(restricted, SETTINGS)):
            await eventually(lambda: reconciled(client))
            await client.delete(SECRETS, SECRET, NAMESPACE)
            await eventually(lambda: reconciled(client))
        with pytest.raises(ForbiddenError):
            await restricted.list(SECRETS, NAMESPACE)


async def test_forbidden_write_of_one_configuration_does_not_prevent_the_other(
    api: Api, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with await api.connect(as_=Forbidden) as restricted:
        metrics = Metrics()
        reconciler = CertificateReconciler(restricted, SETTINGS, metrics)
        async with running(reconciler):

            async def published() -> bool:
                webhooks = (await client.get(VALIDATING_WEBHOOKS, CONFIGURATION))["webhooks"]
                bundle = base64.b64decode(webhooks[0]["clientConfig"].get("caBundle", ""))
                return bundle == (await stored(client)).bundle

            await eventually(published)
            await eventually(lambda: unusable(metrics))
            assert "API servers do not trust the certificate yet: not allowed" in reconciler.not_ready
    assert len([record for record in caplog.records if "cannot reconcile the certificate" in record.message]) == 1


class Forbidden(Client):
    """A client that is forbidden to write the first configuration."""

    allowed = False

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method == "PATCH" and MUTATING_WEBHOOKS.plural in path and not self.allowed:
            raise ForbiddenError("not allowed", code=403)
        return await super().request(method, path, **options)


async def test_pod_becomes_ready_when_trusted_everywhere_and_stays_ready(api: Api, client: Client) -> None:
    async with await api.connect(as_=Forbidden) as restricted:
        assert isinstance(restricted, Forbidden)
        metrics = Metrics()
        reconciler = CertificateReconciler(restricted, SETTINGS, metrics)
        async with running(reconciler):
            await eventually(lambda: unusable(metrics))
            assert reconciler.not_ready
            restricted.allowed = True
            await eventually(lambda: ready(reconciler))
            restricted.allowed = False
            await publish(client, b"")
            await eventually(lambda: unusable(metrics))
            assert not reconciler.not_ready


async def test_pod_is_ready_if_others_published_its_ca(api: Api, client: Client) -> None:
    """A forbidden write is reported. It does not make the pod unready."""
    await CertificateReconciler(client, SETTINGS).ensure()
    await publish(client, (await stored(client)).bundle + Authority.create("other", lifetime=DAY).pair.certificate)
    async with await api.connect(as_=Forbidden) as restricted:
        metrics = Metrics()
        reconciler = CertificateReconciler(restricted, SETTINGS, metrics)
        async with running(reconciler):
            await eventually(lambda: unusable(metrics))
            assert not reconciler.not_ready


@pytest.mark.parametrize("mode", [Mode.CERTGEN, Mode.SECRET, Mode.CERT_MANAGER])
async def test_pod_is_ready_without_webhook_configurations(client: Client, mode: Mode) -> None:
    """They can be created after the pods, or deleted in an emergency."""
    if mode is not Mode.CERTGEN:
        await give(client)
    for resource in KINDS:
        await client.delete(resource, CONFIGURATION)
    reconciler = CertificateReconciler(client, replace(SETTINGS, mode=mode))
    async with running(reconciler):
        await eventually(lambda: ready(reconciler))


@pytest.mark.parametrize("mode", [Mode.SECRET, Mode.CERT_MANAGER])
async def test_pod_becomes_ready_while_pods_of_another_mode_still_run(client: Client, mode: Mode) -> None:
    theirs = replace(SETTINGS, mode=mode, secret="theirs")
    authority = await give(client, "theirs")
    old, new = CertificateReconciler(client, SETTINGS), CertificateReconciler(client, theirs)

    async def inject() -> None:
        while True:
            if await bundles(client) != {authority}:
                await publish(client, authority)
            await asyncio.sleep(0.01)

    async with running(old):
        await eventually(lambda: ready(old))
        injector = asyncio.create_task(inject()) if mode is Mode.CERT_MANAGER else None
        async with running(new):
            await eventually(lambda: ready(new))
        if injector:
            injector.cancel()


async def test_files_are_written_and_stay_while_the_secret_is_missing(client: Client, tmp_path: Path) -> None:
    settings = SETTINGS
    reconciler = CertificateReconciler(client, settings, directory=tmp_path)
    assert reconciler.not_ready
    outcome = await reconciler.ensure()
    assert outcome.leaf
    assert not reconciler.not_ready
    assert (tmp_path / "tls.crt").read_bytes() == outcome.leaf.pair.certificate
    assert (tmp_path / "tls.key").read_bytes() == outcome.leaf.pair.key
    await client.delete(SECRETS, SECRET, NAMESPACE)
    assert (await reconciler.reconcile()).leaf is None
    assert (tmp_path / "tls.crt").read_bytes() == outcome.leaf.pair.certificate
    await renew_leaf(reconciler)
    assert (tmp_path / "tls.crt").read_bytes() != outcome.leaf.pair.certificate


BROKEN: list[tuple[Json, str]] = [
    ({}, "does not exist"),
    ({"data": {"tls.crt": "", "tls.key": ""}}, "there is no PEM certificate that can be read"),
]


@pytest.mark.parametrize("mode", [Mode.SECRET, Mode.CERT_MANAGER])
@pytest.mark.parametrize(("content", "sentence"), BROKEN)
async def test_in_other_modes_a_damaged_secret_is_refused_and_not_changed(
    client: Client, mode: Mode, content: Json, sentence: str
) -> None:
    before = None
    if content:
        before = await client.create(
            SECRETS, {"metadata": {"name": SECRET}, "type": "kubernetes.io/tls", **content}, NAMESPACE
        )
    reconciler = CertificateReconciler(client, settings_of(mode))
    for attempt in (CertificateReconciler.ensure, renew_leaf, replace_authority):
        with pytest.raises(CertificateError):
            await attempt(reconciler)
    with pytest.raises(CertificateError, match=sentence):
        await reconciler.ensure()
    assert await bundles(client) == {b""}
    if before:
        assert await client.get(SECRETS, SECRET, NAMESPACE) == before


async def test_mode_secret_publishes_the_provided_ca_and_its_changes(client: Client, tmp_path: Path) -> None:
    settings = settings_of(Mode.SECRET)
    metrics = Metrics()
    reconciler = CertificateReconciler(client, settings, metrics, directory=tmp_path)
    async with running(reconciler):
        first = await give(client)
        await eventually(lambda: are(bundles(client), {first}))
        second = await give(client)
        await eventually(lambda: are(bundles(client), {second}))
        assert not reconciler.not_ready
        # an unreadable certificate does not replace the files
        served = (tmp_path / "tls.crt").read_bytes()
        await client.patch(SECRETS, {"data": {"tls.crt": "eA=="}}, SECRET, NAMESPACE)
        await eventually(lambda: unusable(metrics))
        assert (tmp_path / "tls.crt").read_bytes() == served
        assert await bundles(client) == {second}


async def test_mode_cert_manager_publishes_nothing_and_reports_a_ca_that_is_not_injected(
    client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = await give(client)
    settings = settings_of(Mode.CERT_MANAGER)
    with pytest.raises(CertificateError, match="the CA injector has not put"):
        await CertificateReconciler(client, settings, directory=tmp_path).ensure()
    metrics = Metrics()
    reconciler = CertificateReconciler(client, settings, metrics, directory=tmp_path)
    async with running(reconciler):
        await eventually(lambda: unusable(metrics))
        assert "the CA injector has not put" in reconciler.not_ready
        assert "the CA injector has not put" in str([record.__dict__ for record in caplog.records])
        with pytest.raises(CertificateError, match="the CA injector has not put"):
            reconciler.check(await reconciler.read_cluster())
        assert await bundles(client) == {b""}
        await publish(client, authority)
        await eventually(lambda: usable(metrics))
        assert not reconciler.not_ready
        reconciler.check(await reconciler.read_cluster())
        await publish(client, b"")
        await eventually(lambda: unusable(metrics))
        assert not reconciler.not_ready, "it was trusted before"
    assert (tmp_path / "tls.crt").exists()


async def test_untrusted_provided_certificate_does_not_replace_a_trusted_one(client: Client, tmp_path: Path) -> None:
    """The provider is faster than the CA injector, or the injector does not run."""
    settings = settings_of(Mode.CERT_MANAGER)
    await publish(client, await give(client))
    metrics = Metrics()
    reconciler = CertificateReconciler(client, settings, metrics, directory=tmp_path)
    async with running(reconciler):
        await eventually(lambda: ready(reconciler))
        served = (tmp_path / "tls.crt").read_bytes()
        second = await give(client)
        await eventually(lambda: unusable(metrics))
        assert (tmp_path / "tls.crt").read_bytes() == served
        await publish(client, second)
        await eventually(lambda: usable(metrics))
        assert (tmp_path / "tls.crt").read_bytes() != served
        # if neither is trusted, the new one is used
        third = await give(client)
        await publish(client, b"")
        await eventually(lambda: unusable(metrics))
        newest = base64.b64decode((await client.get(SECRETS, SECRET, NAMESPACE))["data"]["tls.crt"])

        async def taken() -> bool:
            return (tmp_path / "tls.crt").read_bytes() == newest

        await eventually(taken)
        await publish(client, third)
        await eventually(lambda: usable(metrics))


@pytest.mark.parametrize("mode", [Mode.SECRET, Mode.CERT_MANAGER])
async def test_certificate_of_a_public_ca_needs_no_bundle(client: Client, mode: Mode) -> None:
    await give(client, without="ca.crt")
    reconciler = CertificateReconciler(client, replace(SETTINGS, mode=mode))
    async with running(reconciler):
        await eventually(lambda: ready(reconciler))
    assert await bundles(client) == {b""}


@pytest.mark.parametrize("mode", [Mode.SECRET, Mode.CERT_MANAGER])
async def test_metric_has_the_expiry_of_a_provided_ca(client: Client, mode: Mode) -> None:
    authority = await give(client)
    await publish(client, authority)
    metrics = Metrics()
    await CertificateReconciler(client, replace(SETTINGS, mode=mode), metrics).ensure()
    ends = certificates.certificates(authority)[0].not_valid_after_utc.timestamp()
    assert metrics.registry.get_sample_value(EXPIRY, {"certificate": "authority"}) == ends


async def test_expired_provided_ca_is_not_published(client: Client) -> None:
    await give(client, authority_life=-datetime.timedelta(minutes=1))
    metrics = Metrics()
    reconciler = CertificateReconciler(client, replace(SETTINGS, mode=Mode.SECRET), metrics)
    async with running(reconciler):
        await eventually(lambda: unusable(metrics))
        assert "its CA theirs is valid only" in reconciler.not_ready
    assert await bundles(client) == {b""}


async def test_certificate_that_is_not_valid_yet_is_used_when_it_becomes_valid(client: Client) -> None:
    """Clocks differ a little, and no event tells that a certificate becomes valid."""
    await give(client)
    clock = [datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=10)]
    reconciler = CertificateReconciler(client, replace(SETTINGS, mode=Mode.SECRET), clock=lambda: clock[0])
    with pytest.raises(CertificateError, match="is not valid before"):
        await reconciler.reconcile()
    assert reconciler.not_ready
    clock[0] += datetime.timedelta(minutes=10)
    await reconciler.reconcile()
    assert not reconciler.not_ready


async def test_configurations_get_their_owner_although_the_certificate_is_untrusted(client: Client) -> None:
    await client.create(CLUSTER_ROLES, {"metadata": {"name": "release"}, "rules": []})
    await give(client)
    with pytest.raises(CertificateError, match="the CA injector"):
        await CertificateReconciler(client, settings_of(Mode.CERT_MANAGER), owner="release").reconcile()
    for resource in KINDS:
        assert (await client.get(resource, CONFIGURATION))["metadata"]["ownerReferences"]


async def test_rotation_of_a_missing_secret_is_refused(client: Client) -> None:
    reconciler = CertificateReconciler(client, SETTINGS)
    for renewal in (renew_leaf, replace_authority):
        with pytest.raises(CertificateError, match="the Secret altershield-tls does not exist in system"):
            await renewal(reconciler)
    with pytest.raises(NotFoundError):
        await client.get(SECRETS, SECRET, NAMESPACE)


async def test_webhook_configurations_are_deleted_with_the_namespace(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.create(CLUSTER_ROLES, {"metadata": {"name": "release"}, "rules": []})
    settings = SETTINGS
    async with (
        running(CertificateReconciler(client, settings, owner="release")),
        running(CertificateReconciler(client, settings, owner="release")),
    ):
        await eventually(lambda: reconciled(client))
        await client.delete(NAMESPACES, NAMESPACE)

        async def gone() -> bool:
            return not [each for resource in KINDS for each in (await client.list(resource)).items]

        await eventually(gone)
    assert "deleted the webhook configuration: its gatekeepers are deleted" in caplog.text


async def test_logs_errors_and_metrics_contain_no_keys(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    reconciler = CertificateReconciler(client, SETTINGS, metrics)
    said: list[str] = []
    with caplog.at_level(logging.DEBUG):
        await reconciler.ensure()
        keys = [encode(await stored(client))[key] for key in ("tls.key", "ca.key")]
        await client.patch(SECRETS, {"data": {"tls.crt": keys[0], "ca.crt": keys[1]}}, SECRET, NAMESPACE)
        try:
            reconciler.check(await reconciler.read_cluster())
        except CertificateError as error:
            said.append(str(error))
        await replace_authority(reconciler)
        keys += [encode(await stored(client))[key] for key in ("tls.key", "ca.key")]
    said += [str(record.__dict__) for record in caplog.records]
    said.append(generate_latest(metrics.registry).decode())
    everything = "\n".join(said)
    assert "ca.crt cannot be used" in everything
    assert "PRIVATE KEY" not in everything
    for key in keys:
        assert key[60:90] not in everything
        assert base64.b64decode(key).decode()[60:90] not in everything


async def test_metric_has_the_expiry_of_the_stored_certificate_and_ca(client: Client) -> None:
    metrics = Metrics()
    outcome = await CertificateReconciler(client, SETTINGS, metrics).ensure()
    assert outcome.leaf
    assert outcome.contents.issuer
    expected = {"serving": outcome.leaf.expires, "authority": outcome.contents.issuer.not_valid_after_utc}
    for certificate, expires in expected.items():
        assert metrics.registry.get_sample_value(EXPIRY, {"certificate": certificate}) == expires.timestamp()


async def test_metric_counts_the_webhooks_of_each_configuration(client: Client) -> None:
    metrics = Metrics()

    async def counted(mutating: int, validating: int) -> bool:
        counts = [
            metrics.registry.get_sample_value("altershield_webhooks", {"resource": resource.plural})
            for resource in KINDS
        ]
        return counts == [mutating, validating]

    assert await counted(0, 0), "no configuration was read yet"
    async with running(CertificateReconciler(client, SETTINGS, metrics)):
        every = len(ADAPTERS)
        await eventually(lambda: counted(every, every))
        path = MUTATING_WEBHOOKS.path("", CONFIGURATION)
        emptied = [{"op": "remove", "path": "/webhooks"}]
        await client.request("PATCH", path, body=emptied, content_type="application/json-patch+json")
        await eventually(lambda: counted(0, every))
        await client.delete(VALIDATING_WEBHOOKS, CONFIGURATION)
        await eventually(lambda: counted(0, 0))
        await client.create(VALIDATING_WEBHOOKS, installed()[1])
        await eventually(lambda: counted(0, every))


async def test_all_series_exist_from_the_start() -> None:
    text = generate_latest(Metrics().registry).decode()
    assert 'altershield_certificate_writes_total{reason="leaf_due"} 0.0' in text
    assert 'altershield_stored_certificate_expiry_timestamp_seconds{certificate="serving"} 0.0' in text


async def give(
    client: Client, secret: str = SECRET, *, authority_life: datetime.timedelta = DAY, without: str = ""
) -> bytes:
    """Write a provided certificate into the Secret. Return its CA."""
    authority = Authority.create("theirs", lifetime=authority_life)
    pair = authority.issue("gate", hosts=[HOST], lifetime=DAY)
    values = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pair.certificate}
    data = {key: base64.b64encode(value).decode() for key, value in values.items() if key != without}
    try:
        await client.patch(SECRETS, {"data": data}, secret, NAMESPACE)
    except KubernetesError:
        made = {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "data": data}
        await client.create(SECRETS, made, NAMESPACE)
    return authority.pair.certificate


async def publish(client: Client, bundle: bytes) -> None:
    """Write the bundles as another client does, for example cert-manager's CA injector."""
    encoded = base64.b64encode(bundle).decode()
    places = [f"/webhooks/{number}/clientConfig/caBundle" for number in range(len(ADAPTERS))]
    patch = [{"op": "add", "path": place, "value": encoded} for place in places]
    for resource in KINDS:
        path = resource.path("", CONFIGURATION)
        await client.request("PATCH", path, body=patch, content_type="application/json-patch+json")


async def ready(reconciler: CertificateReconciler) -> bool:
    return not reconciler.not_ready


async def are(found: Awaitable[set[bytes]], expected: set[bytes]) -> bool:
    return await found == expected


async def usable(metrics: Metrics) -> bool:
    return not await unusable(metrics)


async def unusable(metrics: Metrics) -> bool:
    return b"altershield_certificate_unusable 1.0" in generate_latest(metrics.registry)
