"""The client certificates that the API server presents to webhooks, from the file of an AdmissionConfiguration.

The rules are those of kube-apiserver's `pkg/util/webhook/authentication.go`. Users with other credentials are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kube_base.errors import UsageError

MUTATING = "MutatingAdmissionWebhook"
VALIDATING = "ValidatingAdmissionWebhook"

_HTTPS = 443
_FIELDS = {"client-certificate", "client-key"}


@dataclass(frozen=True)
class ClientCertificate:
    certificate: Path
    key: Path

    def stamp(self) -> tuple[int, int]:
        """A value that changes when the files are replaced. Raises OSError if a file is missing."""
        return self.certificate.stat().st_mtime_ns, self.key.stat().st_mtime_ns


class ClientCertificates:
    """The certificates of one admission plugin, by the names of the kubeconfig's users."""

    def __init__(self, users: Mapping[str, ClientCertificate] | None = None, current: str = "") -> None:
        self._users = users or {}
        self._current = current

    def find(self, host: str, port: int) -> ClientCertificate | None:
        """The certificate for a webhook at `host`, which is NAME.NAMESPACE.svc for a Service."""
        for name in _names(f"{host}:{port}"):
            if name in self._users:
                return self._users[name]
        if port == _HTTPS:
            for name in _names(host):
                if name in self._users:
                    return self._users[name]
        return self._users.get("*") or self._users.get(self._current)


def _names(target: str) -> list[str]:
    """The target, then its patterns with a star, the longest first."""
    parts = target.split(".")
    return [target, *("*." + ".".join(parts[number:]) for number in range(1, len(parts)))]


def load(file: Path) -> dict[str, ClientCertificates]:
    """The certificates by the name of the admission plugin. Raises UsageError for a file that cannot be used."""
    found = {}
    for plugin in _read(file, "AdmissionConfiguration").get("plugins") or ():
        if plugin.get("name") in (MUTATING, VALIDATING):
            configuration = plugin.get("configuration") or _read(Path(plugin.get("path", "")), "")
            if configuration.get("kind") != "WebhookAdmissionConfiguration":
                raise UsageError(f"{file}: {plugin['name']} needs a WebhookAdmissionConfiguration")
            kubeconfig = Path(configuration.get("kubeConfigFile", ""))
            if not kubeconfig.is_absolute():
                raise UsageError(f"{file}: kubeConfigFile of {plugin['name']} must be an absolute path")
            found[plugin["name"]] = _of(kubeconfig)
    return found


def _of(kubeconfig: Path) -> ClientCertificates:
    content = _read(kubeconfig, "Config")
    users = {}
    for each in content.get("users") or ():
        fields = each.get("user") or {}
        if set(fields) != _FIELDS:
            raise UsageError(f"{kubeconfig}: the user {each['name']} must have the fields {sorted(_FIELDS)} only")
        pair = (kubeconfig.parent / fields[name] for name in sorted(_FIELDS))  # kubeconfigs may have relative paths
        users[each["name"]] = ClientCertificate(*pair)
    contexts = {each["name"]: each["context"].get("user", "") for each in content.get("contexts") or ()}
    return ClientCertificates(users, contexts.get(content.get("current-context", ""), ""))


def _read(file: Path, kind: str) -> Any:
    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
    if not isinstance(content, dict) or (kind and content.get("kind") != kind):
        raise UsageError(f"{file} is not a file of the kind {kind}")
    return content
