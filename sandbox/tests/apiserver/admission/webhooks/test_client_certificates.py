"""Which client certificate the API server presents to which webhook, and files that it refuses."""

from pathlib import Path

import pytest
import yaml

from kube_base.errors import UsageError
from kube_sandbox.apiserver.admission.webhooks import client_certificates
from kube_sandbox.apiserver.admission.webhooks.client_certificates import MUTATING, VALIDATING, ClientCertificates

HOST = "gate.system.svc"


def write(path: Path, content: object) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def kubeconfig(directory: Path, *names: str, current: str = "") -> Path:
    users = [{"name": name, "user": {"client-certificate": f"{name}.crt", "client-key": "key"}} for name in names]
    contexts = [{"name": "it", "context": {"user": current}}]
    content = {"kind": "Config", "users": users, "contexts": contexts, "current-context": "it"}
    return write(directory / "client.kubeconfig", content)


def admission(directory: Path, kubeconfig: Path | str, *plugins: str) -> Path:
    configuration = {"kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    listed = [{"name": name, "configuration": configuration} for name in plugins]
    return write(directory / "admission.yaml", {"kind": "AdmissionConfiguration", "plugins": listed})


def found(directory: Path, names: tuple[str, ...], port: int, current: str = "") -> str:
    """The name of the user whose certificate the API server presents to HOST; empty for none."""
    loaded = client_certificates.load(admission(directory, kubeconfig(directory, *names, current=current), MUTATING))
    certificate = loaded[MUTATING].find(HOST, port)
    return certificate.certificate.stem if certificate else ""


@pytest.mark.parametrize(
    ("names", "port", "expected"),
    [
        ((f"{HOST}:443", HOST, "*"), 443, f"{HOST}:443"),
        (("*.system.svc:443", "*.svc:443", HOST), 443, "*.system.svc:443"),
        (("*.svc:443", HOST), 443, "*.svc:443"),
        ((HOST, "*.system.svc", "*"), 443, HOST),
        (("*.svc", "*.system.svc", "*"), 443, "*.system.svc"),
        ((HOST, "*.system.svc", "*.svc"), 8443, ""),
        ((HOST, f"{HOST}:8443"), 8443, f"{HOST}:8443"),
        (("*",), 8443, "*"),
        (("other.system.svc", "gate"), 443, ""),
    ],
)
def test_user_of_a_webhook_is_found_by_the_rules_of_kube_apiserver(
    tmp_path: Path, names: tuple[str, ...], port: int, expected: str
) -> None:
    assert found(tmp_path, names, port) == expected


def test_user_of_the_current_context_is_the_last_choice(tmp_path: Path) -> None:
    assert found(tmp_path, ("me",), 443, current="me") == "me"
    assert found(tmp_path, ("me", "*"), 443, current="me") == "*"


def test_each_plugin_has_its_own_certificates_and_other_plugins_are_ignored(tmp_path: Path) -> None:
    loaded = client_certificates.load(admission(tmp_path, kubeconfig(tmp_path, "*"), VALIDATING, "PodSecurity"))
    assert set(loaded) == {VALIDATING}
    assert ClientCertificates().find(HOST, 443) is None


def test_paths_are_relative_to_the_kubeconfig_and_a_new_file_changes_the_stamp(tmp_path: Path) -> None:
    loaded = client_certificates.load(admission(tmp_path, kubeconfig(tmp_path, "*"), MUTATING))
    certificate = loaded[MUTATING].find(HOST, 443)
    assert certificate is not None
    assert certificate.certificate == tmp_path / "*.crt"
    assert certificate.key == tmp_path / "key"
    with pytest.raises(OSError, match="No such file"):
        certificate.stamp()


def test_plugin_may_name_a_file_instead_of_its_configuration(tmp_path: Path) -> None:
    content = {"kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig(tmp_path, "*"))}
    plugin = {"name": MUTATING, "path": str(write(tmp_path / "plugin.yaml", content))}
    file = write(tmp_path / "admission.yaml", {"kind": "AdmissionConfiguration", "plugins": [plugin]})
    assert client_certificates.load(file)[MUTATING].find(HOST, 443) is not None


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(UsageError, match="cannot read"):
        client_certificates.load(missing)
    with pytest.raises(UsageError, match="not a file of the kind AdmissionConfiguration"):
        client_certificates.load(write(tmp_path / "other.yaml", {"kind": "Config"}))
    with pytest.raises(UsageError, match="cannot read"):
        client_certificates.load(admission(tmp_path, missing, MUTATING))
    with pytest.raises(UsageError, match="absolute path"):
        client_certificates.load(admission(tmp_path, "client.kubeconfig", MUTATING))
    unknown = {"kind": "AdmissionConfiguration", "plugins": [{"name": MUTATING, "configuration": {"kind": "Other"}}]}
    with pytest.raises(UsageError, match="needs a WebhookAdmissionConfiguration"):
        client_certificates.load(write(tmp_path / "unknown.yaml", unknown))
    token = {"kind": "Config", "users": [{"name": "*", "user": {"token": "secret"}}]}
    with pytest.raises(UsageError, match="must have the fields"):
        client_certificates.load(admission(tmp_path, write(tmp_path / "token.kubeconfig", token), MUTATING))
