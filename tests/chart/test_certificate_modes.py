"""The value certificates.mode changes in an installed release, and changes back."""

import base64
import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from kube_base.processes import free_ports
from tests.chart.pod import account, here, is_ready, process
from tests.chart.recorder import recording
from tests.chart.release import Release, owners, provide
from tests.chart.rendering import RELEASE, Object, containers
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

OWN, THEIRS = f"{RELEASE}-tls", "my-certificate"
WEBHOOKS = [f"{kind}webhookconfiguration/{RELEASE}" for kind in ("mutating", "validating")]


@contextlib.contextmanager
def certgen(system: Kubectl, cluster: Path, directory: Path) -> Iterator[Path]:
    """Run certgen as the present Deployment specifies. Yields the path of its log when certgen is ready."""
    directory.mkdir()
    container = containers(system.json("deployment", RELEASE))["certgen"]
    ports, log = {"webhook": 0, "certgen": free_ports(1)[0]}, directory / "certgen.log"
    with recording(str(cluster)) as api:
        kubeconfig = account(system, RELEASE, api.url, directory)
        with process(here(container, ports, directory), kubeconfig, log):
            eventually(functools.partial(is_ready, ports["certgen"]), "certgen to be ready")
            yield log
            assert is_ready(ports["certgen"]), log.read_text()


def uids(system: Kubectl) -> list[str]:
    return [system.json(webhook)["metadata"]["uid"] for webhook in WEBHOOKS]


def bundles(system: Kubectl) -> set[bytes]:
    found: list[Object] = [system.json(webhook)["webhooks"][0]["clientConfig"] for webhook in WEBHOOKS]
    return {base64.b64decode(each.get("caBundle", "")) for each in found}


def test_certificate_mode_can_change_from_certgen_to_secret_and_back(
    release: Release, system: Kubectl, cluster: Path, tmp_path: Path
) -> None:
    release.install()
    webhooks = uids(system)
    theirs = provide(system, THEIRS, f"{RELEASE}.{SYSTEM_NAMESPACE}.svc")
    their_secret = system.json("secret", THEIRS)
    with contextlib.ExitStack() as old, contextlib.ExitStack() as new:
        try:
            old_log = old.enter_context(certgen(system, cluster, tmp_path / "own"))
            eventually(lambda: owners(system, f"secret/{OWN}"), "certgen's Secret to be owned")
            eventually(lambda: b"" not in bundles(system), "its CA to be published")
            own_secret, (own,) = system.json("secret", OWN), bundles(system)

            changed = release.upgrade({"certificates": {"mode": "secret", "secretName": THEIRS}})
            assert changed["status"] == "deployed"
            assert bundles(system) == {own}, "Helm does not change caBundle"
            new_log = new.enter_context(certgen(system, cluster, tmp_path / "theirs"))
            eventually(lambda: bundles(system) == {theirs}, "their CA to be published")
            eventually(lambda: is_kept_out(old_log), "the old pods to lose access to their Secret")
            assert bundles(system) == {theirs}, "the old pods must not publish their CA again"
            old.close()
            assert system.json("secret", OWN) == own_secret

            changed = release.upgrade({"certificates": {"mode": "certgen", "secretName": ""}})
            assert changed["status"] == "deployed"
            assert bundles(system) == {theirs}
            old.enter_context(certgen(system, cluster, tmp_path / "own-again"))
            eventually(lambda: bundles(system) == {own}, "the previous CA to be published")
            eventually(lambda: is_kept_out(new_log), "the old pods to lose access to their Secret")
            assert bundles(system) == {own}
            assert uids(system) == webhooks
            old.close()
            new.close()
            release.uninstall()
            system.wait(f"secret/{OWN}", "delete")
            assert system.json("secret", THEIRS) == their_secret
        finally:
            system("delete", "secret", THEIRS)


def is_kept_out(log: Path) -> bool:
    return "is forbidden" in log.read_text()
