"""`python -m altershield.install charts/altershield/files`: write the chart's files that follow from the code, the
CustomResourceDefinitions and the webhooks."""

import sys
from pathlib import Path

import yaml

from altershield.install import webhooks
from altershield.install.crds import crds

HEADER = "# Generated from the types in altershield/api/kinds.py by `make crds`. Do not edit.\n"
WEBHOOKS_HEADER = "# Generated from altershield/admission/registry.py by `make crds`. Do not edit.\n"


def files() -> dict[str, str]:
    """The content of each file, by its path."""
    defined = {
        f"crds/{crd['spec']['names']['plural']}.yaml": HEADER + yaml.safe_dump(crd, sort_keys=False, width=110)
        for crd in crds()
    }
    asked = yaml.safe_dump(webhooks.chart_values(), sort_keys=False, width=110)
    return {**defined, "webhooks.yaml": WEBHOOKS_HEADER + asked}


if __name__ == "__main__":
    for name, content in files().items():
        Path(sys.argv[1], name).write_text(content)
