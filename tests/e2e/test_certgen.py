"""The commands of `python -m certgen`."""

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from certgen.command import main
from tests.support.kubectl import Kubectl
from tests.support.processes import Done, call, python


class Certgen:
    """`certgen` in this process."""

    def __init__(self, kubeconfig: Path, namespace: str, capture: pytest.CaptureFixture[str]) -> None:
        self.options = ["--kubeconfig", str(kubeconfig), "--system-namespace", namespace]
        self._capture = capture

    def __call__(self, *arguments: str) -> Done:
        return call(main, "certgen", *arguments, *self.options, capture=self._capture)


@pytest.fixture
def namespace(admin: Kubectl) -> Iterator[str]:
    name = f"certgen-{uuid.uuid4().hex[:8]}"
    admin("create", "namespace", name)
    yield name
    admin.delete_namespaces(name)


@pytest.fixture
def certgen(cluster: Path, namespace: str, capfd: pytest.CaptureFixture[str]) -> Iterator[Certgen]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield Certgen(cluster, namespace, capfd)
    root.handlers[:] = handlers  # the command configures the logs of its process
    root.setLevel(level)


def test_ensure_rotate_and_show(certgen: Certgen, admin: Kubectl, namespace: str) -> None:
    missing = certgen("show")
    assert missing.returncode == 3
    assert missing.stderr == (
        "Error: the Secret altershield-tls cannot be used: it does not exist; `ensure` repairs it\n"
    )

    refused = certgen("rotate")
    assert refused.returncode == 3
    assert refused.stderr == (
        f"Error: the Secret altershield-tls does not exist in {namespace}; name the release's Secret with --secret, "
        "or create it with `ensure`\n"
    )
    assert python("certgen", "ensure", *certgen.options).returncode == 0
    shown = certgen("show")
    assert shown.returncode == 0
    assert f"altershield.{namespace}.svc" in shown.stdout
    assert "signs" in shown.stdout

    assert certgen("ensure").stderr == "", "without changes there is no log"
    assert certgen("rotate", "--ca", "--settle", "1").returncode == 0
    both = certgen("show")
    assert "trusted only" in both.stdout
    assert certgen("rotate", "--ca", "--distrust", "--settle", "1").returncode == 0
    assert "trusted only" not in certgen("show").stdout
    for done in (shown, both):
        assert "PRIVATE KEY" not in done.stdout + done.stderr


def test_ensure_repairs_a_damaged_secret_and_reports_it(certgen: Certgen, admin: Kubectl, namespace: str) -> None:
    certgen("ensure")
    admin("-n", namespace, "patch", "secret", "altershield-tls", "-p", '{"data":{"tls.crt":"eA=="}}')
    shown = certgen("show")
    assert shown.returncode == 3
    assert "tls.crt and tls.key cannot be used" in shown.stderr
    healed = certgen("ensure")
    assert healed.returncode == 0
    assert "tls.crt and tls.key cannot be used" in healed.stderr
    assert certgen("show").returncode == 0


def test_damaged_secret_of_another_provider_is_refused_and_not_changed(
    certgen: Certgen, admin: Kubectl, namespace: str
) -> None:
    admin("-n", namespace, "create", "secret", "generic", "altershield-tls", "--from-literal=tls.crt=x")
    before = admin.json("-n", namespace, "secret", "altershield-tls")
    refused = certgen("ensure", "--mode", "secret")
    assert refused.returncode == 3
    assert refused.stderr.startswith("Error: the Secret altershield-tls cannot be used: there is no PEM certificate")
    assert admin.json("-n", namespace, "secret", "altershield-tls") == before


@pytest.mark.parametrize("mode", ["secret", "cert-manager"])
def test_rotate_is_refused_in_the_modes_of_other_providers(
    certgen: Certgen, admin: Kubectl, namespace: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode comes from the environment, as in the pod."""
    certgen("ensure")
    before = admin.json("-n", namespace, "secret", "altershield-tls")
    monkeypatch.setenv("ALTERSHIELD_MODE", mode)
    for options in ([], ["--ca"]):
        refused = certgen("rotate", *options)
        assert refused.returncode == 3
        assert refused.stderr == (
            f"Error: the Secret altershield-tls belongs to its provider ({mode}); renew it there\n"
        )
    assert admin.json("-n", namespace, "secret", "altershield-tls") == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["ensure", "--leaf-lifetime", "9", "--ca-lifetime", "9", "--settle", "1"],
            "a CA must live at least three times",
        ),
        (
            ["ensure", "--leaf-lifetime", "100", "--settle", "50"],
            "a certificate must live at least three times as long",
        ),
        (["rotate", "--distrust"], "--distrust needs --ca"),
    ],
)
def test_wrong_options_end_with_code_2_and_one_sentence(certgen: Certgen, arguments: list[str], sentence: str) -> None:
    wrong = certgen(*arguments)
    assert wrong.returncode == 2
    assert sentence in " ".join(wrong.stderr.replace("│", " ").split())
    assert "Traceback" not in wrong.stderr
