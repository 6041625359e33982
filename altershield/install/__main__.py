"""`python -m altershield.install DIRECTORY`: write the CustomResourceDefinitions as the chart carries them."""

import sys
from pathlib import Path

import yaml

from altershield.install.crds import crds

HEADER = "# Generated from the types in altershield/api/kinds.py by `make crds`. Do not edit.\n"


def files() -> dict[str, str]:
    """The content of each file, by its name."""
    return {
        f"{crd['spec']['names']['plural']}.yaml": HEADER + yaml.safe_dump(crd, sort_keys=False, width=110)
        for crd in crds()
    }


if __name__ == "__main__":
    for name, content in files().items():
        Path(sys.argv[1], name).write_text(content)
