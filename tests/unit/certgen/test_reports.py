"""Logs and metrics of the reconciler."""

import base64
import logging

import pytest
from prometheus_client import generate_latest

from altershield.admission.webhooks import MUTATING, VALIDATING
from certgen.contents import encode
from certgen.errors import CertificateError
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from certgen.rotation import replace_authority
from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS

from .api import CONFIGURATION, EXPIRY, NAMESPACE, SECRET, SETTINGS, eventually, installed, running, stored


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
        mutating, validating = len(MUTATING), len(VALIDATING)
        await eventually(lambda: counted(mutating, validating))
        path = MUTATING_WEBHOOKS.path("", CONFIGURATION)
        emptied = [{"op": "remove", "path": "/webhooks"}]
        await client.request("PATCH", path, body=emptied, content_type="application/json-patch+json")
        await eventually(lambda: counted(0, validating))
        await client.delete(VALIDATING_WEBHOOKS, CONFIGURATION)
        await eventually(lambda: counted(0, 0))
        await client.create(VALIDATING_WEBHOOKS, installed()[1])
        await eventually(lambda: counted(0, validating))


async def test_all_series_exist_from_the_start() -> None:
    text = generate_latest(Metrics().registry).decode()
    assert 'altershield_certificate_writes_total{reason="leaf_due"} 0.0' in text
    assert 'altershield_stored_certificate_expiry_timestamp_seconds{certificate="serving"} 0.0' in text
