"""When a pod is ready, and the files of its certificate."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from certgen.rotation import renew_leaf
from certgen.settings import Mode
from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.pki import Authority
from kube_base.resources import SECRETS

from .api import (
    CONFIGURATION,
    DAY,
    NAMESPACE,
    SECRET,
    SETTINGS,
    Api,
    Forbidden,
    bundles,
    eventually,
    give,
    publish,
    ready,
    running,
    stored,
    unusable,
)


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
