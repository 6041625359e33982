"""Fills the manifest of the kubectl plugin for krew with the version, and with the address and the checksum of each
archive.

    python -m supply_chain.krew 0.1.0 https://example.com/releases/v0.1.0 dist > dist/altershield.yaml
"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "integrations" / "krew" / "altershield.yaml"


def archive(version: str, platform: str) -> str:
    """The name of the archive of a platform such as `linux-amd64`."""
    return f"kubectl-altershield-{version}-{platform}.tar.gz"


def manifest(version: str, address: str, archives: Path) -> str:
    """The manifest. `archives` is the folder with the archives, `address` the URL below which users get them.

    Raises FileNotFoundError if the archive of a platform is missing."""

    def of(platform: re.Match[str]) -> str:
        name = archive(version, platform[1])
        digest = hashlib.sha256((archives / name).read_bytes()).hexdigest()
        return f"uri: {address}/{name}\n      sha256: {digest}"

    text = TEMPLATE.read_text().replace("VERSION", f"v{version}")
    return re.sub(r"uri: ARCHIVE (\S+)", of, text)


if __name__ == "__main__":
    print(manifest(sys.argv[1], sys.argv[2], Path(sys.argv[3])), end="")
