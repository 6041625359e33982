"""The AlterShield server that is called, and the identity of the caller."""

from dataclasses import dataclass
from pathlib import Path

PLATFORM = "kubernetes"
TENANT = "default"
SCENE = "com.alipay.altershield.kubernetes.rollingupdate"
PHASE = "prod_phase"
PHASES = ("dev_phase", "sim_phase", "pre_phase", "gray_phase", "prod_beta_phase", "prod_phase")
"""The phases that the server's code knows."""


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
