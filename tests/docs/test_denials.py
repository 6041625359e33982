"""Every command in the text of a denial, and of `altershield why` after it, works as it stands there."""

import re

import pytest

from tests.docs.shell import Shell

pytestmark = [pytest.mark.xdist_group("docs")]

_COMMAND = re.compile(r"(?::|,|run) ((?:kubectl|altershield) [^;\n]+?)(?=;|\n|$)")
_SUGGESTED = re.compile(r"^ +((?:kubectl|altershield) .+)$", re.MULTILINE)

DENIED = "kubectl -n shop set image deployment web nginx={} 2>&1 || true"


def commands(denial: str) -> list[str]:
    return [each.strip() for each in _COMMAND.findall(denial)]


def fail(shell: Shell) -> None:
    """Suspend the releases of `web`: a second version, whose first pod gets a failing verdict."""
    shell.run("kubectl -n shop set image deployment web nginx=nginx:1.28\naltershield wait deploy/web -n shop")
    shell.run(
        'altershield verdict "$(kubectl -n shop get pods -o jsonpath={.items[0].metadata.name})" fail -n shop -m bad'
    )
    suspended = "kubectl -n shop get deployments -l altershield.defense.antgroup.com/suspend -o name"
    shell.run(f"until {suspended} | grep web; do sleep 0.2; done")


def try_each(shell: Shell, found: list[str]) -> None:
    for command in found:
        # `altershield` says by its exit code how the release stands: 2 is a wrong command, 127 an unknown one
        shell.run(f"{command} || case $? in 2|127) false;; esac" if command.startswith("altershield") else command)


def test_commands_of_a_suspension_work(changed_shop: Shell) -> None:
    fail(changed_shop)
    found = commands(changed_shop.run(DENIED.format("nginx:1.29")))
    assert [each.split()[:2] for each in found] == [["kubectl", "label"], ["kubectl", "delete"], ["altershield", "why"]]
    try_each(changed_shop, found)


def test_commands_that_why_suggests_after_a_suspension_work(changed_shop: Shell) -> None:
    fail(changed_shop)
    found = _SUGGESTED.findall(changed_shop.run("altershield why deploy/web -n shop || true"))
    assert {each.split()[1] for each in found} >= {"approve", "retry", "repair", "resume", "rollback", "delete"}
    try_each(changed_shop, found[::-1])  # the last one deletes the pod, and a rollback comes before an approval


def test_command_of_a_version_that_was_rolled_back_works(changed_shop: Shell) -> None:
    changed_shop.run("kubectl -n shop set image deployment web nginx=nginx:missing")
    image = "jsonpath='{.spec.template.spec.containers[0].image}'"
    changed_shop.run(f"kubectl -n shop wait deployment web --timeout=180s --for={image}=nginx:1.27")
    found = commands(changed_shop.run(DENIED.format("nginx:missing")))
    assert [each.split()[:2] for each in found] == [["kubectl", "label"]]
    try_each(changed_shop, found)
    changed_shop.run("kubectl -n shop set image deployment web nginx=nginx:missing")  # it lets one release pass


def test_commands_of_a_closed_gate_work(changed_shop: Shell) -> None:
    changed_shop.run("altershield freeze incident-7 -n shop --reason 'incident 7' --until 2h")
    release = "kubectl -n shop set image deployment/web nginx=nginx:1.28 --dry-run=server"
    changed_shop.run(f"until {{ {release} 2>&1 || true; }} | grep 'incident 7'; do sleep 0.2; done")
    denial = changed_shop.run(DENIED.format("nginx:1.28"))
    found = commands(denial)
    assert found
    try_each(changed_shop, found)


def test_command_of_a_protected_object_works(changed_shop: Shell) -> None:
    changed_shop.run("altershield protect deploy/web -n shop --reason 'the shop needs it'")
    found = commands(changed_shop.run("kubectl -n shop delete deployment web 2>&1 || true"))
    assert [each.split()[:2] for each in found] == [["kubectl", "label"]]
    try_each(changed_shop, found)
    changed_shop.run("kubectl -n shop delete deployment web --dry-run=server")


def test_command_of_a_budget_works(changed_shop: Shell) -> None:
    changed_shop.run("""kubectl -n shop apply -f - <<'EOF'
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: PodUnavailableBudget
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxUnavailable: 0}
EOF""")
    pod = changed_shop.run("kubectl -n shop get pods -o jsonpath='{.items[0].metadata.name}'").strip()
    deletion = f"kubectl -n shop delete pod {pod} --dry-run=server"
    changed_shop.run(f"until {{ {deletion} 2>&1 || true; }} | tee refusal | grep maxUnavailable; do sleep 0.2; done")
    found = commands(changed_shop.run("cat refusal"))
    assert [each.split()[:3] for each in found] == [["kubectl", "edit", "pub"]]
    changed_shop.run("export EDITOR=true")
    try_each(changed_shop, found)


def test_commands_of_a_repair_that_is_not_verified_work(changed_shop: Shell) -> None:
    fail(changed_shop)
    changed_shop.run("altershield repair deploy/web -n shop")
    changed_shop.run("kubectl -n shop set image deployment web nginx=nginx:missing")
    release = "kubectl -n shop set image deployment web nginx=nginx:1.30 --dry-run=server"
    changed_shop.run(f"until {{ {release} 2>&1 || true; }} | tee refusal | grep 'not verified yet'; do sleep 0.2; done")
    found = commands(changed_shop.run("cat refusal"))
    assert [each.split()[:2] for each in found] == [["kubectl", "get"]]
    changed_shop.run(f"until {found[0]}; do sleep 0.2; done")  # the object is there once the repair is processed


def test_commands_of_a_limit_of_deletions_work(changed_shop: Shell) -> None:
    changed_shop.run("""kubectl apply -f - <<'EOF'
apiVersion: app.ops.cloud.alipay.com/v1alpha1
kind: PodDeletionFlowControl
metadata: {name: strict}
spec: {limitRules: [{interval: 1m, limit: 100}], breaker: {mode: Manual}}
EOF
kubectl wait poddeletionflowcontrol/strict --for=condition=Accepted
altershield breaker open strict
export EDITOR=true""")
    pod = changed_shop.run("kubectl -n shop get pods -o jsonpath='{.items[0].metadata.name}'").strip()
    deletion = f"kubectl -n shop delete pod {pod} --dry-run=server"
    try:
        changed_shop.run(f"until {{ {deletion} 2>&1 || true; }} | tee refusal | grep 'is open'; do sleep 0.2; done")
        found = commands(changed_shop.run("cat refusal"))
        assert [each.split()[:2] for each in found] == [["altershield", "breaker"], ["kubectl", "edit"]]
        try_each(changed_shop, found)
    finally:
        changed_shop.run("kubectl delete poddeletionflowcontrol strict")
