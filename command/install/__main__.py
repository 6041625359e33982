"""`python -m command.install charts/altershield/files` writes the files of the chart that are generated from code:
the CustomResourceDefinitions, the permissions, the webhooks and the admission policies."""

import sys
from pathlib import Path

import yaml

from command.install import policies, rbac, webhooks
from command.install.crds import crds

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


if __name__ == "__main__":
    for name, content in files().items():
        Path(sys.argv[1], name).write_text(content)
