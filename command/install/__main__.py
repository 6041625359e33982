"""`python -m command.install charts/altershield/files` writes the files of the chart that are generated from code: the
CustomResourceDefinitions, the permissions, the webhooks and the admission policies. It also writes the list of kinds in
Chart.yaml."""

import re
import sys
import textwrap
from pathlib import Path

import yaml

from command.install import policies, rbac, webhooks
from command.install.crds import crds
from reconciler.manager import SUBJECTS

HEADER = "# Generated from the types in altershield/api by `make crds`. Do not edit.\n"
POLICIES_HEADER = "# Generated from command/install/*_policies.py by `make crds`. Do not edit.\n"
GATEKEEPER = "GATEKEEPER"
"""Placeholder in the template of the chart for the user name of the gatekeeper."""
RECONCILER = "RECONCILER"
"""Placeholder in the template of the chart for the user name of the reconciler."""
CHECK = "HELM-TEST"
"""Placeholder in the template of the chart for the user name of the account of `helm test`."""
GROUPS = "CUSTOM-RESOURCE-GROUPS"
"""Placeholder in the template of the chart for the value `protection.deletion.customResourceGroups`."""
WEBHOOKS_HEADER = "# Generated from altershield/admission/registry.py by `make crds`. Do not edit.\n"

_LISTED_KINDS = re.compile(r"(  artifacthub\.io/crds: \|\n)(?:    .*\n)+")


def files() -> dict[str, str]:
    """The content of each file, by its path."""
    defined = {
        f"crds/{crd['spec']['names']['plural']}.yaml": HEADER + yaml.safe_dump(crd, sort_keys=False, width=110)
        for crd in crds()
    }
    values = yaml.safe_dump(webhooks.chart_values(), sort_keys=False, width=110)
    named = {
        "policies.yaml": policies.own_policies(GATEKEEPER, RECONCILER, CHECK),
        "deletion_policies.yaml": policies.deletion_policies(GROUPS, lock=True),
    }
    written = {
        name: POLICIES_HEADER + yaml.safe_dump_all(objects, sort_keys=False, width=110)
        for name, objects in named.items()
    }
    rules = {
        "reconciler_rules.yaml": rbac.text(rbac.CLUSTER_RIGHTS),
        "reader_rules.yaml": rbac.text(rbac.READER_RIGHTS),
    }
    return {**defined, **rules, "webhooks.yaml": WEBHOOKS_HEADER + values, **written}


def chart_yaml(text: str) -> str:
    """Chart.yaml with the kinds of all subjects in the annotation of Artifact Hub."""
    entries = [
        {
            "kind": kind.resource.kind,
            "version": kind.resource.version,
            "name": kind.resource.full_name,
            "displayName": kind.title,
            "description": kind.summary,
        }
        for subject in SUBJECTS
        for kind in subject.kinds
    ]
    listed = textwrap.indent(yaml.safe_dump(entries, sort_keys=False, width=1000), "    ")
    return _LISTED_KINDS.sub(lambda found: found[1] + listed, text)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    for name, content in files().items():
        (directory / name).write_text(content)
    chart = directory.parent / "Chart.yaml"
    chart.write_text(chart_yaml(chart.read_text()))
