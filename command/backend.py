"""The Kubernetes API for `altershield demo` and `altershield sandbox`, and the AlterShield server of the sandbox.

Only this module imports the sandbox, which is a separate distribution and may not be installed.
"""

import contextlib
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kube_base.errors import UsageError

if TYPE_CHECKING:
    from kube_sandbox.altershield_server.server import AlterShieldServer
    from kube_sandbox.backends import Backend


@contextlib.asynccontextmanager
async def open_backend(
    kubeconfig: str | None,
    directory: Path,
    *,
    port: int = 0,
    simulate: bool = False,
    token_auth_file: Path | None = None,
    **settings: Any,
) -> AsyncIterator["Backend"]:
    """See `kube_sandbox.backends.open_backend`; `settings` are fields of its SimulationSettings.

    UsageError: the sandbox is not installed, or a setting is invalid. ReportedError: the sandbox fails.
    """
    try:
        from kube_sandbox.backends import open_backend as open_sandbox
        from kube_sandbox.cluster.settings import SimulationSettings
        from kube_sandbox.garbage import collect_less_often
    except ImportError as error:
        raise _not_installed(error) from error
    collect_less_often()
    opened = open_sandbox(
        kubeconfig,
        directory,
        SimulationSettings(**settings),
        port=port,
        simulate=simulate,
        token_auth_file=token_auth_file,
    )
    async with contextlib.AsyncExitStack() as stack:
        try:
            backend = await stack.enter_async_context(opened)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise UsageError(
                f"cannot listen on port {port}: {os.strerror(error.errno)}; choose another one with --port"
            ) from error
        yield backend


@contextlib.asynccontextmanager
async def open_altershield_server(token: str, callback_url: str) -> AsyncIterator["AlterShieldServer"]:
    """An AlterShield server with scripted checks, on any free port of loopback; see `kube_sandbox.altershield_server`.

    UsageError: the sandbox is not installed.
    """
    try:
        from kube_sandbox.altershield_server.server import AlterShieldServer
    except ImportError as error:
        raise _not_installed(error) from error
    async with AlterShieldServer(token=token, callback_url=callback_url) as server:
        yield server


def _not_installed(error: ImportError) -> UsageError:
    return UsageError(
        f"the sandbox is not installed ({error}): run `pip install ./sandbox` in a clone of AlterShield's repository"
    )
