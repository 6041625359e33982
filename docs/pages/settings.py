"""The settings, with their defaults."""

from altershield.api import ops_config
from altershield.api.names import SYSTEM_NAMESPACE
from docs.pages.markdown import GENERATED, table

_MEANINGS = {
    ops_config.BLOCKING: "On: a release that fails is suspended, and further releases of the workload are denied. A "
    "version that was rolled back is denied too. Off: ChangeWorkloads show failures, and all releases pass. Workloads "
    "that are already suspended stay suspended.",
    ops_config.BRANCH: "On: pods are verified in batches. `content` is the size of a batch: a number of pods (`10`) or "
    f"a share of the replicas (`10%`), never more than the replicas or {ops_config.MAX_BATCH}. Off: pods are verified "
    "one by one.",
    ops_config.ROLLBACK: "On: a release is rolled back when enough of its pods are overdue and an older version "
    "serves. `content` is this limit: a number of pods (`2`) or a share of the existing pods of this version (`20%`, "
    "rounded up), at least one. Off: AlterShield does not roll back on its own; it suspends a release with so many "
    "overdue pods. AlterShield carries out a rollback that a person asks for in both cases.",
    ops_config.ROLLOUT: "On: releases are made in the [steps](kinds.md#defensepolicy) that a DefensePolicy asks for. "
    "Off: no release is held, and every workload that is held gets its own fields back. Its release goes on without "
    "steps and is verified, also one that failed: roll it back first. `altershield uninstall` switches it off.",
}


_EXAMPLES = f"""\
## blocking

Switch it off, and on again:

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo blocking --type merge -p '{{"spec":{{"enable":false}}}}'
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo blocking --type merge -p '{{"spec":{{"enable":true}}}}'
```

## rollback

`rollback` switches automatic rollbacks. Switch it off:

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo rollback --type merge -p '{{"spec":{{"enable":false}}}}'
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo rollback --for=jsonpath='{{.status.enable}}'=false
```

AlterShield then withdraws a rollback that it has not carried out yet. If `blocking` is off as well, AlterShield only
writes ChangeWorkloads. Switch it on again, with the share of overdue pods at which a release is rolled back:

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo rollback --type merge \\
  -p '{{"spec":{{"enable":true,"content":"20%"}}}}'
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo rollback --for=jsonpath='{{.status.enable}}'=true
```

## branch

Verify a tenth of the replicas at a time, or fewer after
[`reconciler.batchWaitSeconds`](../../charts/altershield/values.yaml):

```sh
kubectl -n {SYSTEM_NAMESPACE} patch opsconfiginfo branch --type merge -p '{{"spec":{{"enable":true,"content":"10%"}}}}'
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo branch --for=jsonpath='{{.status.content}}'=10%
```

## rollout

Let go of all workloads that are held in steps, and wait until each has its own fields again:

```sh
kubectl apply -f - <<'SETTING'
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: OpsConfigInfo
metadata:
  name: rollout
  namespace: {SYSTEM_NAMESPACE}
spec:
  type: isRollout
  enable: false
SETTING
kubectl -n {SYSTEM_NAMESPACE} wait opsconfiginfo rollout --for=jsonpath='{{.status.enable}}'=false
```

Delete the setting to hold releases again:

```sh
kubectl -n {SYSTEM_NAMESPACE} delete opsconfiginfo rollout
```

## A wrong setting

A wrong setting has no effect: the last accepted value stays in effect. The condition `Accepted` says what to correct.

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
"""How to change each setting, and what a wrong value does."""


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

You change these settings in the cluster, at any time, without a restart. Each setting is an object of the kind
[OpsConfigInfo](kinds.md#opsconfiginfo) in the namespace `{SYSTEM_NAMESPACE}`. AlterShield creates missing settings
with their defaults, but not `rollout`: without it, releases are held in steps. Everything else is configured with
[options](commands.md) of the commands, or with [values](../../charts/altershield/values.yaml) of the chart.

{table(("name", "`spec.type`", "`spec.enable`", "`spec.content`", "effect"), rows)}
A pod is [*overdue*](../verdicts.md#the-words) when it has not been up for longer than the start timeout
([`reconciler.startTimeoutSeconds`](../../charts/altershield/values.yaml)), and the cluster is not the cause
([`Stalled`](kinds.md#stalled)).

{_EXAMPLES}"""
