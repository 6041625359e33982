"""Writes the software bill of materials (CycloneDX, JSON) of the Python packages in the image: AlterShield and the
packages of requirements.lock. They are read from an environment that is made for this and then deleted.

It does not contain the packages of Debian. The image's own SBOM, an attestation of the image, has them.

    python -m supply_chain.sbom dist/altershield.cdx.json
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from supply_chain import tools

ROOT = Path(__file__).parents[1]
_SECONDS = 600


def write(python: Path, output: Path) -> None:
    """Write the SBOM of all packages that are installed for the interpreter `python`. The same packages give the same
    bytes."""
    output.parent.mkdir(parents=True, exist_ok=True)
    _run(*command(python, output))


def command(python: Path, output: Path) -> list[str | Path]:
    """The command that writes the SBOM, and validates it before."""
    generate: list[str | Path] = [tools.find("cyclonedx-py"), "environment"]
    options: list[str | Path] = ["--mc-type", "application", "--output-reproducible", "--output-file", output]
    return [*generate, "--pyproject", ROOT / "pyproject.toml", *options, python]


def install(directory: Path) -> Path:
    """Install the Python packages of the image into a new environment without pip. Return its interpreter."""
    venv.create(directory, with_pip=False)
    python = directory / "bin" / "python"
    options = ("install", "--quiet", "--disable-pip-version-check")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, *options]
    _run(*pip, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", ROOT / "requirements.lock")
    _run(*pip, "--no-deps", ROOT)
    return python


def _run(*command: str | Path) -> None:
    subprocess.run(command, timeout=_SECONDS, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        write(install(Path(temporary)), Path(sys.argv[1]))
