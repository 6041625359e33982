"""Checks the options for an AlterShield server."""

import re
import urllib.parse

from altershield.errors import UsageError
from altershield.process.server_options import PHASES, SCENE, ServerOptions
from reconciler.server.server_settings import Settings
from reconciler.server.token_file import read_token

_MAX_TENANT = 64  # bytes, as in the server's database
_PLATFORM = re.compile(r"[!-~]{1,32}")  # the value of a header
_SCENE = re.compile(r"[!-+\--~]{1,256}")  # no comma: the heartbeat lists scenes with commas


def server_settings(options: ServerOptions) -> Settings | None:
    """The settings of the client, or None without a server. UsageError: an option is invalid, also one of the callback
    port, or the token file contains no token."""
    if (phase := options.server_phase.lower()) not in PHASES:
        raise UsageError(f"--server-phase {options.server_phase!r} is not one of {', '.join(PHASES)}")
    if (options.callback_tls_cert_file is None) != (options.callback_tls_private_key_file is None):
        raise UsageError("--callback-tls-cert-file and --callback-tls-private-key-file need each other")
    callback_url(options)
    if not options.server_url.strip():
        return None
    if not options.server_tenant.strip() or len(options.server_tenant.encode(errors="replace")) > _MAX_TENANT:
        raise UsageError(f"--server-tenant must have 1 to {_MAX_TENANT} bytes: the server requires a tenant")
    if not _PLATFORM.fullmatch(options.server_platform):
        raise UsageError("--server-platform must have 1 to 32 ASCII characters and no space")
    if not _SCENE.fullmatch(options.server_scene):
        raise UsageError(f"--server-scene {options.server_scene!r} is no key of a scene, such as {SCENE}")
    if options.server_token_file is not None:
        read_token(options.server_token_file)
    return Settings(
        url=_base_url(options.server_url, "--server-url", "http://altershield:8080"),
        platform=options.server_platform,
        tenant=options.server_tenant.strip(),
        scene=options.server_scene,
        phase=phase,
        token_file=options.server_token_file,
    )


def callback_url(options: ServerOptions) -> str:
    """The URL of the callback port without a slash at its end; empty if it is not known. UsageError: it is invalid."""
    if not options.callback_url.strip():
        return ""
    return _base_url(options.callback_url, "--callback-url", "https://releases.example.com")


def _base_url(text: str, option: str, example: str) -> str:
    """The URL without a slash at its end. UsageError if no path can be appended to it. No message contains the user
    information of a URL, because this may be a password."""
    try:
        url = urllib.parse.urlsplit(text.strip())
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise UsageError(f"{option} is no URL; it must look like {example}") from error
    if "@" in url.netloc:
        raise UsageError(f"{option} must not contain a user or a password; use --server-token-file for the token")
    if url.scheme not in ("http", "https") or not host or not re.fullmatch(r"[!-~]+", text.strip()):
        raise UsageError(f"{option} must look like {example} or https://altershield.example/path")
    if url.query or url.fragment:
        raise UsageError(f"{option} must not contain a query or a fragment")
    return f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
