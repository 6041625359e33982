"""`python -m reconciler`: verifies releases, suspends failed ones and rolls back releases whose pods do not come up."""

import contextlib
import functools
import os

from altershield.process.parameters import with_options
from altershield.process.signals import stop_event
from altershield.process.startup import main, run, single
from kube_base.access.client import Client
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.outbound.outbound_client import Outbound, api_servers
from reconciler.outbound.urls import allowed_hosts
from reconciler.receivers.file import Delivery, ReceiversFile
from reconciler.receivers.file import allowed as allowed_receivers
from reconciler.server.server_client import ServerClient
from reconciler.server.server_options import server_settings


@with_options(Options)
def reconciler(options: Options) -> None:
    """Verify releases, suspend failed ones and roll back releases whose pods do not come up."""
    run(functools.partial(_run, options), options.log_level)


async def _run(options: Options) -> None:
    stop = stop_event()
    settings = server_settings(options)
    allowed = allowed_hosts(options.checks_allowed_hosts)
    file = options.notifications_file
    receivers = ReceiversFile(file) if file is not None else None
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(await Client.connect(options.kubeconfig))
        server = await stack.enter_async_context(ServerClient(settings)) if settings is not None else None
        api_server = api_servers(os.environ.get("KUBERNETES_SERVICE_HOST", ""), url=client.server)
        outbound = await stack.enter_async_context(Outbound(allowed, api_server))
        delivery = None
        if receivers is not None:
            hosts = allowed_receivers(receivers.current.receivers)
            delivery = Delivery(receivers, await stack.enter_async_context(Outbound(hosts, api_server)))
        manager = Manager(client, options, server=server, outbound=outbound, delivery=delivery)
        await manager.run(stop)


app = single(reconciler)

if __name__ == "__main__":
    main(app)
