"""The start of `altershield dev` in a cluster with CRDs and webhook configurations."""

import asyncio
import base64
import datetime
import sys
from typing import Any

import pytest
import typer
from aiohttp import web

import reconciler.__main__
from altershield.admission.webhooks import WEBHOOKS, Webhook
from command.demo import command as demo
from command.dev_removal import removed
from command.dev_webhooks import CONFIGURATION, refuse_running, refuse_second, withdraw, withdrawn
from command.installation import Installation, InstallationStoppedError, Thresholds, _established, access_objects
from command.uninstall import LeftOverError
from kube_base.errors import ReportedError, UsageError
from kube_base.pki import Authority
from kube_base.processes import Process
from kube_base.resources import CRDS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.support.stub_api import answer, serving

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
async def test_webhooks_without_a_listener_do_not_count_as_a_running_command(
    webhooks: list[dict[str, Any]] | None,
) -> None:
    async with serving() as (_, admin):
        await admin.create(VALIDATING_WEBHOOKS, {"metadata": {"name": CONFIGURATION}, "webhooks": webhooks})
        await refuse_running(admin)


async def test_crd_that_is_being_deleted_is_an_error() -> None:
    """It stays established until it is deleted, and then it is missing."""
    name = "changepods.app.ops.cloud.alipay.com"
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    async with serving() as (_, admin):
        crd = {"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": established}
        await admin.create(CRDS, crd)
        with pytest.raises(InstallationStoppedError, match=f"{name} is being deleted"):
            await _established(admin, name)


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda each: each.name)
async def test_installed_webhook_of_altershield_refuses_a_second_installation(webhook: Webhook) -> None:
    async with serving() as (_, admin):
        resource = MUTATING_WEBHOOKS if webhook.mutating else VALIDATING_WEBHOOKS
        await admin.create(resource, {"metadata": {"name": "theirs"}, "webhooks": [{"name": "a.b.c"}]})
        await refuse_second(admin)
        await admin.create(resource, {"metadata": {"name": "altershield"}, "webhooks": [{"name": webhook.name}]})
        with pytest.raises(UsageError, match="installed in this cluster already"):
            await refuse_second(admin)


@pytest.mark.parametrize(("code", "error"), [(2, UsageError), (1, InstallationStoppedError)])
async def test_process_that_refuses_its_options_is_a_usage_error(code: int, error: type[ReportedError]) -> None:
    async with Process([sys.executable, "-c", f"raise SystemExit({code})"], None) as process:
        with pytest.raises(error, match=r"^the reconciler ") as raised:
            await Installation({"reconciler": process}, "").failed()
    assert raised.value.exit_code == code


def test_reconciler_accepts_every_threshold() -> None:
    thresholds = Thresholds(
        start_timeout=1.5, observe_seconds=2.5, batch_wait=3, pre_timeout=4, post_timeout=5, lease_duration=6.5
    )
    told = typer.main.get_command(reconciler.__main__.app).make_context("reconciler", thresholds.arguments).params
    assert {name: told[name] for name in vars(thresholds)} == vars(thresholds)


@pytest.mark.parametrize(("fast", "expected"), [(True, (8, 1)), (False, (120, 10))])
def test_option_fast_of_the_demo_shortens_the_thresholds(
    fast: bool, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Thresholds] = []

    async def played(_kubeconfig: str | None, thresholds: Thresholds) -> None:
        told.append(thresholds)

    monkeypatch.setattr(demo, "_demo", played)
    demo.demo(fast=fast)
    assert [(each.start_timeout, each.observe_seconds) for each in told] == [expected]


async def test_webhooks_that_cannot_be_deleted_at_the_end_are_named_with_the_command_that_deletes_them() -> None:
    async with serving() as (api, admin):
        await api.stop()
        with pytest.raises(LeftOverError) as raised:
            await withdraw(admin, "/my files/config", "prod")
        assert str(raised.value) == (
            f"the webhooks of AlterShield are still registered: cannot reach the API server at {admin.server}: "
            "connection refused; they have failurePolicy Fail and no gatekeeper, so the API server refuses releases in "
            "governed namespaces; to delete them, run: kubectl --kubeconfig '/my files/config' --context prod delete "
            "mutatingwebhookconfiguration,validatingwebhookconfiguration altershield-dev --ignore-not-found; "
            "to delete all other objects: altershield uninstall"
        )


async def test_process_that_failed_is_named_as_well_as_the_webhooks_that_cannot_be_deleted() -> None:
    async with serving() as (api, admin):
        await api.stop()
        with pytest.raises(LeftOverError, match=r"^the gatekeeper ended; the webhooks .* still registered.*, run: "):
            async with withdrawn(admin, None, None):
                raise InstallationStoppedError("the gatekeeper ended")


async def test_failed_process_alone_is_reported_as_it_is() -> None:
    async with serving() as (_, admin):
        await admin.create(VALIDATING_WEBHOOKS, {"metadata": {"name": CONFIGURATION}})
        with pytest.raises(InstallationStoppedError, match=r"^the gatekeeper ended$"):
            async with withdrawn(admin, None, None):
                raise InstallationStoppedError("the gatekeeper ended")
        assert (await admin.list(VALIDATING_WEBHOOKS)).items == []


async def test_second_signal_during_the_deletion_of_the_webhooks_says_that_they_are_left() -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3600)
        raise AssertionError

    async with serving() as (api, admin):
        api.fault(lambda request: request.method == "DELETE", never)
        stopping = asyncio.create_task(withdraw(admin, None, None))
        await api.wait_for_requests(lambda request: request.method == "DELETE", 1)
        stopping.cancel()
        with pytest.raises(LeftOverError, match=r"still registered: the command was stopped .*, run: kubectl delete "):
            await stopping


OBJECTS = access_objects(callbacks=True)


async def test_end_of_the_command_deletes_its_objects_and_says_what_stays(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving() as (api, admin):
        for resource, obj in OBJECTS:
            await api.put(resource, obj)
        with pytest.raises(InstallationStoppedError, match=r"^the gatekeeper ended$"):
            async with removed(admin, OBJECTS):
                raise InstallationStoppedError("the gatekeeper ended")
        for resource in {resource for resource, _ in OBJECTS}:
            assert (await admin.list(resource)).items == []
    said = capsys.readouterr().err
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole", "ServiceAccount"):
        assert f"{sum(resource.kind == kind for resource, _ in OBJECTS)} {kind}" in said
    assert "Kept the CustomResourceDefinitions with all their objects" in said
    assert "helm install --take-ownership" in said


async def test_objects_that_cannot_be_deleted_at_the_end_are_left_and_the_command_is_named() -> None:
    async with serving() as (api, admin):
        with pytest.raises(LeftOverError, match=r"^objects of AlterShield are left .*: altershield uninstall$"):
            async with removed(admin, OBJECTS):
                await api.stop()


async def test_user_who_may_not_install_gets_only_that_error() -> None:
    async with serving() as (api, admin):
        api.fault(lambda request: request.method == "DELETE", answer(403, 'User "ann" cannot delete resource "x"'))
        with pytest.raises(InstallationStoppedError, match=r"^cannot install$"):
            async with removed(admin, OBJECTS):
                raise InstallationStoppedError("cannot install")
