"""The reconciler on a Kubernetes API: what it writes, and changes by others."""

import asyncio
import json
import logging

import pytest
from prometheus_client import generate_latest

from certgen.errors import CertificateError
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from certgen.rotation import renew_leaf, replace_authority
from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.resources import CLUSTER_ROLES, NAMESPACES, SECRETS, VALIDATING_WEBHOOKS

from .api import (
    CONFIGURATION,
    NAMESPACE,
    SECRET,
    SETTINGS,
    Json,
    eventually,
    installed,
    reconciled,
    running,
    settings_of,
    stored,
)


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
