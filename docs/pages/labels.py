"""The labels, read from `altershield.api.labels`."""

from altershield.api import deletion_protection, labels, released_by
from altershield.releases import history
from altershield.workloads import ADAPTERS
from docs.pages.markdown import GENERATED, documented, table

_HEAD = f"""\
# Labels

{GENERATED}

You set three of these labels: `{labels.GOVERNED}: {labels.GOVERNED_VALUE}` on a Namespace,
`{labels.IGNORED_SUSPEND}: "true"` on a workload, and `{labels.CREDENTIALS}: "true"` on a Secret. AlterShield
sets the others. If somebody else changes or removes one of them on a workload, AlterShield restores it.

The same applies to the annotation `{released_by.ANNOTATION}` on a workload: the user who released its version, and the
time. The annotations `{history.ANNOTATION}` and `{history.APPLIED}` are on the ControllerRevisions of the
[history](../history.md).

On objects of any namespace, you set `{deletion_protection.LABEL}` and the annotation `{deletion_protection.REASON}` to
[protect them from deletion](../protect.md). AlterShield sets the label only on its own CustomResourceDefinitions.

"""

_NO_LABELS_OF_OURS = ("OWNED", "NOT_IN_TEMPLATES", "CONTROLLER_REVISION_HASH")

_KINDS = ",".join(adapter.resource.plural for adapter in ADAPTERS if not adapter.crd)

_EXAMPLES = f"""
Show the labels:

```sh
kubectl get namespaces -l {labels.GOVERNED_SELECTOR}
kubectl -n shop get {_KINDS},pods -L {labels.VERSION}
```

Show the suspended workloads:

```console
$ kubectl get {_KINDS} -A -l {labels.SUSPEND}
No resources found
```
"""


def page() -> str:
    texts = documented(labels)
    rows = [(f"`{getattr(labels, name)}`", text) for name, text in texts.items() if name not in _NO_LABELS_OF_OURS]
    return _HEAD + table(("label", "object and meaning"), rows) + _EXAMPLES
