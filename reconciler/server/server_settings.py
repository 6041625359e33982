"""The AlterShield server that is called, and the identity of the caller."""

from dataclasses import dataclass
from pathlib import Path

from altershield.process.server_options import PHASE, PLATFORM, SCENE, TENANT


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a `ServerClient`. `server_settings` checks the values."""

    url: str
    """The base URL, without a slash at its end. `/openapi/v1/…` is appended."""
    platform: str = PLATFORM
    tenant: str = TENANT
    scene: str = SCENE
    phase: str = PHASE
    token_file: Path | None = None
    """None: requests are signed with an empty token."""
