"""The labels, from where the code has them."""

from altershield.api import labels
from docs.pages.markdown import GENERATED, documented, table

_HEAD = f"""\
# Labels

{GENERATED}

Two are for you to set: `{labels.GOVERNED}: {labels.GOVERNED_VALUE}` on a Namespace, and
`{labels.IGNORED_SUSPEND}: "true"` on a Deployment. The others are AlterShield's own. On a Deployment, what
somebody else writes, changes or takes off of them is put back.

"""

_NO_LABELS_OF_OURS = ("OWNED", "POD_TEMPLATE_HASH")

_EXAMPLES = """
See them all:

```sh
kubectl get namespaces -l admission-webhook-altershield=enabled
kubectl -n shop get deployments,pods -L admission-webhook-altershield.antgroup.com/version
```

Of a suspended Deployment:

```console
$ kubectl get deployments -A -l altershield.defense.antgroup.com/suspend
No resources found
```
"""


def page() -> str:
    texts = documented(labels)
    rows = [(f"`{getattr(labels, name)}`", text) for name, text in texts.items() if name not in _NO_LABELS_OF_OURS]
    return _HEAD + table(("label", "on what, and what it means"), rows) + _EXAMPLES
