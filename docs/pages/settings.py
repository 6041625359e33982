"""The two settings, with their defaults."""

from altershield.api import ops_config
from altershield.api.names import SYSTEM_NAMESPACE
from docs.pages.markdown import GENERATED, table

_MEANINGS = {
    ops_config.BLOCKING: "A release that failed its verification is suspended, and further ones are denied. Off: "
    "failures are recorded only, and what was rolled back may be released again. What is suspended already stays so.",
    ops_config.BRANCH: "Pods are verified in batches, not one by one. `content` is the batch: a number of pods (`10`) "
    f"or a share of the replicas (`10%`), never more than the replicas, nor than {ops_config.MAX_BATCH}.",
}


def page() -> str:
    rows = [
        (
            f"`{name}`",
            f"`{default.type}`",
            "on" if default.enable else "off",
            f"`{default.content}`" if default.content else "",
            _MEANINGS[name],
        )
        for name, default in ops_config.DEFAULTS.items()
    ]
    return f"""\
# Settings

{GENERATED}

Two settings are switched in the cluster, at any time, without a restart. They are objects of the kind
[OpsConfigInfo](kinds.md#opsconfiginfo) in `{SYSTEM_NAMESPACE}`, made with their defaults when they are missing. All
others are [options](commands.md) of the commands, or [values](../../charts/altershield/values.yaml) of the chart.

{table(("name", "`spec.type`", "`spec.enable`", "`spec.content`", "on means"), rows)}
Switch `blocking` off, and on again:

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo blocking --type merge -p '{{"spec":{{"enable":false}}}}'
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo blocking --type merge -p '{{"spec":{{"enable":true}}}}'
```

Verify a tenth of the replicas at a time, or fewer after
[`reconciler.batchWaitSeconds`](../../charts/altershield/values.yaml):

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo branch --type merge -p '{{"spec":{{"enable":true,"content":"10%"}}}}'
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo branch --for=jsonpath='{{.status.content}}'=10%
```

A wrong one changes nothing: what was accepted last stays in effect, and the condition `Accepted` says what to correct.

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo branch --type merge -p '{{"spec":{{"content":"many"}}}}'
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo branch --for=condition=Accepted=False
```

```console
$ kubectl get opsconfiginfo branch -n {SYSTEM_NAMESPACE} -o jsonpath='{{.status.conditions[0].message}}'
content is a number of pods from 1 (`10`) or a share from 1% to 100% (`10%`), not 'many'; correct it
```

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo branch --type merge -p '{{"spec":{{"enable":false,"content":"10"}}}}'
```
"""
