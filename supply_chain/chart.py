"""Packages the chart so that the same commit gives the same bytes.

Helm 4 writes the modification times of the files into the archive, and Helm 3 the time of the command. So the chart is
copied, and each file gets the time of the last commit (or SOURCE_DATE_EPOCH), before Helm 4's engine packages it.

    python -m supply_chain.chart dist
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import helm_python

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "altershield"


def package(chart: Path, destination: Path, epoch: int) -> Path:
    """Package `chart` into `destination`, with `epoch` (Unix seconds) as the time of each file."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(chart, Path(temporary) / chart.name))
        for path in copy.rglob("*"):
            os.utime(path, (epoch, epoch))
        destination.mkdir(parents=True, exist_ok=True)
        return Path(helm_python.package(copy, destination=destination))


def source_date_epoch() -> int:
    """SOURCE_DATE_EPOCH, or the time of the last commit."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return int(done.stdout)


if __name__ == "__main__":
    archive = package(CHART, Path(sys.argv[1]), source_date_epoch())
    print(hashlib.sha256(archive.read_bytes()).hexdigest(), archive)
