"""Certificates that others provide: the modes other than certgen."""

import base64
import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from certgen import certificates
from certgen.errors import CertificateError
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from certgen.rotation import renew_leaf, replace_authority
from certgen.settings import Mode
from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.resources import CLUSTER_ROLES, SECRETS

from .api import (
    CONFIGURATION,
    EXPIRY,
    NAMESPACE,
    SECRET,
    SETTINGS,
    Json,
    are,
    bundles,
    eventually,
    give,
    publish,
    ready,
    running,
    settings_of,
    unusable,
    usable,
)

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
