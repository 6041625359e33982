"""The checks that a reconciler can run, by the field of CheckSpec that asks for them."""

from collections.abc import Callable

from kube_base.access.client import Client
from reconciler.batches.plan import HEALTH, HTTP, JOB, LOGS, PROMETHEUS, SERVER, Checks
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.check import Check
from reconciler.checks.health_check import HealthCheckRunner
from reconciler.checks.http_check import HttpCheckRunner
from reconciler.checks.job_check import JobCheckRunner
from reconciler.checks.logs_check import LogsCheckRunner
from reconciler.checks.prometheus_check import PrometheusCheckRunner
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.secrets import Secrets


def runners(
    client: Client,
    outbound: Outbound | None,
    server: AlterShieldServer | None,
    clock: Callable[[], float],
    *,
    system_namespace: str,
    observe: float,
    callback_url: str | None = None,
) -> Checks:
    """`server` is None if none is configured. `observe`: seconds for which pods are observed before they are up.
    Without `outbound`, no URL of a tenant is requested. `callback_url` is that of the callback port; empty: it is not
    known; None: there is no such port."""
    found: dict[str, Check] = {
        HEALTH: HealthCheckRunner(client, clock, observe),
        JOB: JobCheckRunner(client, clock, system_namespace),
        LOGS: LogsCheckRunner(client, clock),
    }
    if server is not None:
        found[SERVER] = server
    if outbound is not None:
        secrets = Secrets(client)
        found[PROMETHEUS] = PrometheusCheckRunner(outbound, secrets, clock)
        found[HTTP] = HttpCheckRunner(outbound, secrets, clock, callback_url)
    return found
