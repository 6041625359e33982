"""The page of the gates: which of them are closed, and when they open."""

import time
from typing import Any

from altershield.views.gates.documents import gate_list
from altershield.views.gates.reading import read
from kube_base.access.client import Client


async def page(client: Client, namespace: str, system_namespace: str) -> dict[str, Any]:
    """What the template gets: the gates of the namespace and those of AlterShield's, those that are closed first.
    GateError: the reader may read none of them."""
    found = await read(client, (namespace, system_namespace), time.time())
    return {"namespace": namespace, "of": gate_list(found.gates, found.unread)}
