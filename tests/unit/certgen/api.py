"""A Kubernetes API with the namespace of certgen, and helpers for tests of the reconciler on it."""

import asyncio
import base64
import contextlib
import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from certgen.contents import Contents, decode
from certgen.lifetimes import Lifetimes
from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from certgen.settings import Mode, Settings
from certgen.webhook_configurations import KINDS
from command.install.webhooks import configurations
from kube_base.access import credentials
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, KubernetesError
from kube_base.pki import Authority
from kube_base.resources import MUTATING_WEBHOOKS, SECRETS
from kube_sandbox.apiserver.server import ApiServer
from tests.support.polling import until

NAMESPACE, SECRET, CONFIGURATION = "system", "altershield-tls", "altershield"
HOST = "altershield.system.svc"
DAY = datetime.timedelta(days=1)
LIFETIMES = Lifetimes(authority=9 * DAY, leaf=3 * DAY, settle=datetime.timedelta(seconds=0.5))


def settings_of(mode: Mode = Mode.CERTGEN, namespace: str = NAMESPACE) -> Settings:
    lifetimes = (LIFETIMES.authority, LIFETIMES.leaf, LIFETIMES.settle)
    ca_lifetime, leaf_lifetime, settle = (each.total_seconds() for each in lifetimes)
    return Settings(
        system_namespace=namespace,
        secret=SECRET,
        webhook_configuration=CONFIGURATION,
        san=[HOST],
        mode=mode,
        ca_lifetime=ca_lifetime,
        leaf_lifetime=leaf_lifetime,
        settle=settle,
    )


SETTINGS = settings_of()


# The rules that the service account needs. The chart must grant them.
NAMESPACE_RULES = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [SECRET],
        "verbs": ["get", "list", "watch", "patch", "delete"],
    },
]
CLUSTER_RULES = [
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [CONFIGURATION],
        "verbs": ["get", "list", "watch", "patch"],
    }
]

EXPIRY = "altershield_stored_certificate_expiry_timestamp_seconds"

Json = dict[str, Any]


@dataclass(frozen=True)
class Api:
    server: ApiServer
    directory: Path

    async def connect(self, user: str = "", as_: type[Client] = Client) -> Client:
        """A client with the credentials of the administrator, or of `user`."""
        kubeconfig = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        kubeconfig.write_text(self.server.kubeconfig(self.server.add_token(user) if user else None))
        return as_((await credentials.load(str(kubeconfig), None)).configuration)


class Forbidden(Client):
    """A client that is forbidden to write the first configuration."""

    allowed = False

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method == "PATCH" and MUTATING_WEBHOOKS.plural in path and not self.allowed:
            raise ForbiddenError("not allowed", code=403)
        return await super().request(method, path, **options)


def installed() -> list[Json]:
    return configurations(CONFIGURATION, f"https://{HOST}:443", b"", system_namespace=NAMESPACE)


async def stored(client: Client) -> Contents:
    contents, problems = decode((await client.get(SECRETS, SECRET, NAMESPACE))["data"])
    assert problems == []
    return contents


async def bundles(client: Client) -> set[bytes]:
    found = set()
    for resource in KINDS:
        for webhook in (await client.get(resource, CONFIGURATION))["webhooks"]:
            found.add(base64.b64decode(webhook["clientConfig"].get("caBundle", "")))
    return found


async def reconciled(client: Client) -> bool:
    """Whether the certificate is signed and all webhooks have the bundle."""
    contents = await stored(client)
    return contents.serving is not None and await bundles(client) == {contents.bundle}


async def eventually(met: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `met`; errors of the API server and failed assertions count as not met."""

    async def tolerant() -> bool:
        with contextlib.suppress(KubernetesError, AssertionError):
            return await met()
        return False

    await until(tolerant)


@contextlib.asynccontextmanager
async def running(reconciler: CertificateReconciler) -> AsyncIterator[None]:
    task = asyncio.create_task(reconciler.run())
    try:
        yield
        assert not task.done(), "the reconciler ended"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def give(
    client: Client, secret: str = SECRET, *, authority_life: datetime.timedelta = DAY, without: str = ""
) -> bytes:
    """Write a provided certificate into the Secret. Return its CA."""
    authority = Authority.create("theirs", lifetime=authority_life)
    pair = authority.issue("gate", hosts=[HOST], lifetime=DAY)
    values = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.pair.certificate}
    data = {key: base64.b64encode(value).decode() for key, value in values.items() if key != without}
    try:
        await client.patch(SECRETS, {"data": data}, secret, NAMESPACE)
    except KubernetesError:
        made = {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "data": data}
        await client.create(SECRETS, made, NAMESPACE)
    return authority.pair.certificate


async def publish(client: Client, bundle: bytes) -> None:
    """Write the bundles as another client does, for example cert-manager's CA injector."""
    encoded = base64.b64encode(bundle).decode()
    for resource in KINDS:
        number = len((await client.get(resource, CONFIGURATION))["webhooks"])
        places = [f"/webhooks/{each}/clientConfig/caBundle" for each in range(number)]
        patch = [{"op": "add", "path": place, "value": encoded} for place in places]
        path = resource.path("", CONFIGURATION)
        await client.request("PATCH", path, body=patch, content_type="application/json-patch+json")


async def ready(reconciler: CertificateReconciler) -> bool:
    return not reconciler.not_ready


async def are(found: Awaitable[set[bytes]], expected: set[bytes]) -> bool:
    return await found == expected


async def usable(metrics: Metrics) -> bool:
    return not await unusable(metrics)


async def unusable(metrics: Metrics) -> bool:
    return b"altershield_certificate_unusable 1.0" in generate_latest(metrics.registry)
