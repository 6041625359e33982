"""The files of a control plane: certificates, the key for service account tokens, kubeconfigs. Only the current user
can read them."""

import base64
import datetime
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kube_base.pki import Authority

_LIFETIME = datetime.timedelta(days=365)
_SERVER_NAMES = (
    "127.0.0.1",
    "localhost",
    "10.96.0.1",  # the Service `kubernetes`, which has the first address of the Service range
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True)
class PairFiles:
    certificate: Path
    key: Path


class ControlPlaneFiles:
    """Writes the files to `directory`, for an API server at `url`. Each instance creates new certificates."""

    def __init__(self, directory: Path, url: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.url = url
        self._directory = directory
        self._authority = Authority.create("kube-sandbox", lifetime=_LIFETIME)
        self.ca = self._write("ca.crt", self._authority.pair.certificate)
        self.ca_key = self._write("ca.key", self._authority.pair.key)
        self.server = self._pair("apiserver", "kube-apiserver", hosts=_SERVER_NAMES)
        self.service_account_key = self._write("service-accounts.key", _rsa_key())
        self._admin = self._pair("admin", "kubernetes-admin", groups=["system:masters"])
        self._kubeconfig("admin", self._admin)

    def kubeconfig(self, name: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate for `user`; returns its path."""
        return self._kubeconfig(name, self._pair(name, user, groups=groups))

    def client_context(self) -> ssl.SSLContext:
        """A TLS context with the client certificate of the administrator."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        return context

    def _pair(self, name: str, common_name: str, *, hosts: Sequence[str] = (), groups: Sequence[str] = ()) -> PairFiles:
        pair = self._authority.issue(common_name, hosts=hosts, organizations=groups, lifetime=_LIFETIME)
        return PairFiles(self._write(f"{name}.crt", pair.certificate), self._write(f"{name}.key", pair.key))

    def _kubeconfig(self, name: str, pair: PairFiles) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [
                {
                    "name": "control-plane",
                    "cluster": {"server": self.url, "certificate-authority-data": _encoded(self.ca)},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": "control-plane", "user": name}}],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": _encoded(pair.certificate),
                        "client-key-data": _encoded(pair.key),
                    },
                }
            ],
        }
        return self._write(f"{name}.kubeconfig", yaml.safe_dump(config, sort_keys=False).encode())

    def _write(self, name: str, content: bytes) -> Path:
        """Write a file with mode 0600. The mode is set when the file is created, so no other user can open it
        before."""
        path = self._directory / name
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        return path


def _rsa_key() -> bytes:
    """A key for service account tokens, in the PEM form that all versions of kube-apiserver read (PKCS#1)."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
