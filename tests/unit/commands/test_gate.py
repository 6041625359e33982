"""What `altershield dev` makes of webhook configurations that it finds."""

import base64
import datetime
from typing import Any

import pytest

from altershield.api.resources import CRDS, VALIDATING_WEBHOOKS
from altershield.commands.gate import CONFIGURATION, GateStoppedError, _established, _refuse_running
from altershield.pki import Authority
from tests.stub_api import serving

CA = base64.b64encode(Authority.create("test", lifetime=datetime.timedelta(days=1)).pair.certificate).decode()
SERVICE = {"name": "altershield", "namespace": "default"}


@pytest.mark.parametrize(
    "webhooks",
    [
        None,
        [],
        [{"name": "a.b.c", "clientConfig": {"service": SERVICE}}],
        [{"name": "a.b.c", "clientConfig": {"service": SERVICE, "caBundle": CA}}],
        [{"name": "a.b.c", "clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": "bm9uZQ=="}}],
        [{"name": "a.b.c", "clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": CA}}],
    ],
)
async def test_what_no_running_gate_answers_for_is_no_running_gate(webhooks: list[dict[str, Any]] | None) -> None:
    async with serving() as (_, admin):
        await admin.create(VALIDATING_WEBHOOKS, {"metadata": {"name": CONFIGURATION}, "webhooks": webhooks})
        await _refuse_running(admin)


async def test_a_definition_that_is_being_deleted_is_not_relied_on() -> None:
    """It is established until it is gone, and then nobody makes it anew."""
    name = "changepods.app.ops.cloud.alipay.com"
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    async with serving() as (_, admin):
        crd = {"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": established}
        await admin.create(CRDS, crd)
        with pytest.raises(GateStoppedError, match=f"{name} is being deleted"):
            await _established(admin, name)
