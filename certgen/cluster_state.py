"""The Secret and the webhook configurations as they are in the cluster."""

from dataclasses import dataclass

from certgen import secret, webhook_configurations
from certgen.contents import Contents, decode
from certgen.secret import Secret
from certgen.settings import Settings
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.access.client import Client


@dataclass(frozen=True)
class ClusterState:
    """The objects as they were read: first the configurations, then the Secret, as `plan` requires."""

    configurations: list[WebhookConfiguration]
    secret: Secret | None
    contents: Contents
    """The contents of certgen's own Secret; empty if others made it."""
    problems: list[str]

    @property
    def is_foreign(self) -> bool:
        """Whether the Secret exists but certgen did not create it."""
        return self.secret is not None and not self.secret.is_ours


async def read(client: Client, settings: Settings) -> ClusterState:
    """Read the webhook configurations and the Secret."""
    published = await webhook_configurations.read(client, settings.webhook_configuration)
    stored = await secret.read(client, settings.secret, settings.system_namespace)
    if stored is None:
        return ClusterState(published, None, Contents(), ["it does not exist"])
    if not stored.is_ours:
        return ClusterState(published, stored, Contents(), ["certgen did not create it"])
    return ClusterState(published, stored, *decode(stored.data or {}))
