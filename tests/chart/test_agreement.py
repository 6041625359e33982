"""The chart agrees with the code: kinds, permissions, webhooks, options."""

import shutil
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml
from typer.core import TyperOption

import certgen.command
import gatekeeper.__main__
import reconciler.__main__
from altershield.admission.webhooks import webhook_name, webhook_path
from altershield.api.names import CHECK_ACCOUNT, SYSTEM_NAMESPACE, service_account_user
from altershield.workloads import ADAPTERS
from certgen.settings import service_hosts
from command import app
from command.install import crds, policies, rbac, webhooks
from command.install.__main__ import chart_yaml, files
from tests.chart.arguments import parsed
from tests.chart.rendering import (
    CHART,
    Object,
    all_containers,
    containers,
    flat,
    is_hook,
    of_kind,
    of_reconciler,
    rendered,
    the,
    user_roles,
    variables,
)


def test_crd_and_webhook_files_match_the_code() -> None:
    here = {path: (CHART / "files" / path).read_text() for path in files()}
    assert here == files(), "the generated files are old: run `make crds`"
    metadata = (CHART / "Chart.yaml").read_text()
    assert chart_yaml(metadata) == metadata, "the list of kinds is old: run `make crds`"
    written = {path.relative_to(CHART / "files").as_posix() for path in (CHART / "files" / "crds").iterdir()}
    assert written == {path for path in files() if path.startswith("crds/")}


def test_crds_match_the_code_and_are_kept_on_uninstall(chart: helm_python.Chart) -> None:
    found = of_kind(rendered(chart), "CustomResourceDefinition")
    assert all(crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"} for crd in found)
    assert {crd["metadata"]["name"]: crd["spec"] for crd in found} == {
        crd["metadata"]["name"]: crd["spec"] for crd in crds.crds()
    }
    assert of_kind(rendered(chart, {"crds": {"install": False}}), "CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("callbacks", "jobs", "logs"),
    [(False, False, False), (True, False, False), (False, True, False), (False, False, True), (True, True, True)],
)
def test_roles_match_those_of_dev_plus_the_rules_for_certgen(
    chart: helm_python.Chart, callbacks: bool, jobs: bool, logs: bool
) -> None:
    server = {"url": "http://server:8080", "callbacks": {"enabled": callbacks}}
    objects = rendered(chart, {"server": server, "checks": {"jobs": {"enabled": jobs}, "logs": {"enabled": logs}}})
    wanted = rbac.objects(SYSTEM_NAMESPACE, server=True, callbacks=callbacks, jobs=jobs, logs=logs)
    dev = {obj["kind"]: obj for obj in wanted}
    for kind in ("ClusterRole", "Role"):
        rules = the(objects, kind)["rules"]
        assert rules[: len(dev[kind]["rules"])] == dev[kind]["rules"]
        for rule in rules[len(dev[kind]["rules"]) :]:  # the rules for certgen
            assert rule.get("resourceNames") or rule["resources"] == ["secrets"], (
                "certgen may only access named objects"
            )
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert the(objects, kind)["subjects"] == dev[kind]["subjects"]
        assert the(objects, kind)["roleRef"] == dev[kind]["roleRef"]
    assert the(objects, "ServiceAccount")["metadata"]["name"] == dev["ServiceAccount"]["metadata"]["name"]


def test_separate_accounts_have_the_roles_of_the_code_plus_the_rules_for_certgen(chart: helm_python.Chart) -> None:
    values = {"reconciler": {"separate": True}, "server": {"callbacks": {"enabled": True}}}
    objects = rendered(chart, {**values, "checks": {"jobs": {"enabled": True}}})
    dev = {obj["kind"]: obj for obj in rbac.objects(SYSTEM_NAMESPACE, callbacks=True, jobs=True)}
    for kind, allowed in (("ClusterRole", rbac.GATEKEEPER_RULES), ("Role", rbac.GATEKEEPER_SYSTEM_RULES)):
        assert of_reconciler(objects, kind)["rules"] == dev[kind]["rules"]
        rules = the(objects, kind)["rules"]
        assert rules[: len(allowed)] == list(allowed)
        assert all(rule.get("resourceNames") or rule["verbs"] == ["create"] for rule in rules[len(allowed) :])
        writes = {each for rule in allowed for each in flat(rule) if each[0] not in ("get", "list", "watch")}
        statuses = {"podunavailablebudgets/status", "poddeletionflowcontrols/status", "releaseoverrides/status"}
        assert {each[2] for each in writes} <= statuses
    accounts = {"altershield": the, "altershield-reconciler": of_reconciler}
    for account, find in accounts.items():
        subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            assert find(objects, kind)["subjects"] == [subject]
            assert find(objects, kind)["roleRef"]["name"] == account
        assert find(objects, "ServiceAccount")["metadata"]["name"] == account
        pod = find(objects, "Deployment")["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == account


def test_rules_of_the_gatekeeper_are_a_part_of_those_of_the_common_account() -> None:
    granted = {each for rule in rbac.CLUSTER_RULES for each in flat(rule)}
    assert {each for rule in (*rbac.GATEKEEPER_RULES, *rbac.GATEKEEPER_SYSTEM_RULES) for each in flat(rule)} <= granted


def test_user_roles_match_those_of_dev(chart: helm_python.Chart) -> None:
    found, wanted = user_roles(rendered(chart)), rbac.user_roles()
    assert [role["metadata"]["name"] for role in found] == [role["metadata"]["name"] for role in wanted]
    for role, dev in zip(found, wanted, strict=True):
        assert role["rules"] == dev["rules"]
        assert aggregations(role) == aggregations(dev)


def test_admission_policies_match_those_of_dev_and_name_the_service_account_of_the_release(
    chart: helm_python.Chart,
) -> None:
    def known(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
        return {(obj["kind"], obj["metadata"]["name"]): obj["spec"] for obj in objects}

    found = [obj for obj in rendered(chart) if obj["kind"] in policies.RESOURCES]
    assert known(found) == known(policies.policies(service_account_user(), service_account_user(name=CHECK_ACCOUNT)))
    elsewhere = [obj for obj in rendered(chart, namespace="other", release="gate") if obj["kind"] in policies.RESOURCES]
    of_deletions = {obj["metadata"]["name"].removeprefix("altershield-") for obj in policies.deletion_policies()}
    conditions = {
        obj["spec"]["matchConditions"][0]["expression"]
        for obj in elsewhere
        if "matchConditions" in obj["spec"] and not is_of(obj, of_deletions)
    }
    (account,) = {obj["metadata"]["name"] for obj in of_kind(rendered(chart, release="gate"), "ServiceAccount")}
    user = f"system:serviceaccount:other:{account}"
    username = "request.userInfo.username"
    assert conditions == {f"{username} != '{user}'", f"{username} in ['{user}', '{user}-check']"}
    names = {obj["metadata"]["name"] for obj in elsewhere}
    of_users = (
        "accepted",
        "applied",
        "breaker",
        "checks",
        "history",
        "requests",
        "verdicts",
        "duties",
        "duties-verdicts",
        "duties-kept",
        "freezes",
        "gates",
        "overrides",
        "uses",
    )
    of_account = ("own-workloads", "own-pods", "own-deletions", "own-objects")
    assert names == {f"{account}-{suffix}" for suffix in (*of_users, *of_account, *of_deletions)}
    assert {obj["spec"].get("policyName") for obj in elsewhere} == {*names, None}


def test_no_account_may_change_the_policies_that_hold_it(chart: helm_python.Chart) -> None:
    """Admission policies are not evaluated for changes of admission policies, so RBAC alone protects them."""
    for values in ({}, {"reconciler": {"separate": True}, "checks": {"jobs": {"enabled": True}}}):
        roles = [obj for obj in rendered(chart, values) if obj["kind"] in ("ClusterRole", "Role")]
        granted = {resource for role in roles for rule in role["rules"] for resource in rule["resources"]}
        assert granted
        assert not granted & {"*", *(each.plural for each in policies.RESOURCES.values())}


def is_of(policy: Object, suffixes: Collection[str]) -> bool:
    """Whether the name of a policy ends with one of these."""
    return str(policy["metadata"]["name"]).endswith(tuple(suffixes))


def test_policies_against_deletion_follow_the_values(chart: helm_python.Chart) -> None:
    def rendered_policies(**values: Any) -> list[Object]:
        found = [
            obj for obj in rendered(chart, {"protection": {"deletion": values}}) if obj["kind"] in policies.RESOURCES
        ]
        return [obj for obj in found if "-protect-" in obj["metadata"]["name"]]

    def specs(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
        return {(obj["kind"], obj["metadata"]["name"]): obj["spec"] for obj in objects}

    assert rendered_policies(enabled=False) == []
    assert rendered_policies(enabled=False, lock=True) == []
    groups = ["cert-manager.io", "apps.kruise.io"]
    wanted = policies.deletion_policies(*groups, lock=True)
    assert specs(rendered_policies(lock=True, customResourceGroups=groups)) == specs(wanted)
    assert specs(rendered_policies()) == specs(policies.deletion_policies())
    for separate in (False, True):
        values = {"reconciler": {"separate": separate}, "protection": {"deletion": {"customResourceGroups": groups}}}
        rules = the(rendered(chart, values), "ClusterRole")["rules"]
        assert {"apiGroups": groups, "resources": ["*"], "verbs": ["list"]} in rules


def aggregations(role: Object) -> dict[str, str]:
    labels: dict[str, str] = role["metadata"]["labels"]
    return {key: value for key, value in labels.items() if "/aggregate-to-" in key}


@pytest.mark.parametrize("mode", ["cert-manager", "secret"])
def test_a_provided_secret_may_only_be_read(chart: helm_python.Chart, mode: str) -> None:
    objects = rendered(chart, {"certificates": {"mode": mode}})
    verbs = [set(rule["verbs"]) for rule in the(objects, "Role")["rules"] if rule["resources"] == ["secrets"]]
    assert verbs == [{"get", "list", "watch"}]


def test_webhooks_match_those_of_dev(chart: helm_python.Chart) -> None:
    objects = rendered(chart)
    for dev in webhooks.configurations("altershield", "https://gatekeeper", b"", system_namespace=SYSTEM_NAMESPACE):
        found = the(objects, dev["kind"])["webhooks"]
        assert [webhook["name"] for webhook in found] == [webhook["name"] for webhook in dev["webhooks"]]
        for webhook, wanted in zip(found, dev["webhooks"], strict=True):
            path = wanted.pop("clientConfig")["url"].removeprefix("https://gatekeeper")
            service = {"name": "altershield", "namespace": SYSTEM_NAMESPACE, "path": path, "port": 443}
            assert webhook.pop("clientConfig") == {"service": service}, "caBundle belongs to certgen"
            assert webhook == wanted


def test_a_webhook_without_conditions_gets_no_empty_field(tmp_path: Path) -> None:
    folder = tmp_path / "altershield"
    shutil.copytree(CHART, folder)
    file = folder / "files" / "webhooks.yaml"
    found = yaml.safe_load(file.read_text())
    for each in found["validating"]:
        each.pop("matchConditions", None)
    file.write_text(yaml.safe_dump(found))
    changed = helm_python.Chart.load(folder)
    (workloads, *_) = the(rendered(changed), "ValidatingWebhookConfiguration")["webhooks"]
    assert workloads["name"] == "vdeployment.kb.io"
    assert "matchConditions" not in workloads


def test_each_kind_of_workload_has_one_mutating_and_one_validating_webhook(chart: helm_python.Chart) -> None:
    objects = rendered(chart)
    for mutating, kind in ((True, "MutatingWebhookConfiguration"), (False, "ValidatingWebhookConfiguration")):
        found = {
            webhook["name"]: webhook
            for webhook in the(objects, kind)["webhooks"]
            if webhook["rules"][0]["resources"][0] in [each.resource.plural for each in ADAPTERS]
        }
        assert list(found) == [webhook_name(each.resource, mutating=mutating) for each in ADAPTERS]
        for adapter in ADAPTERS:
            resource = adapter.resource
            webhook = found[webhook_name(resource, mutating=mutating)]
            assert webhook["clientConfig"]["service"]["path"] == webhook_path(resource, mutating=mutating)
            (rule,) = webhook["rules"]
            assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == (
                [resource.group],
                [resource.version],
                [resource.plural],
            )


def test_webhook_timeouts_of_one_request_stay_below_ten_seconds_in_all(chart: helm_python.Chart) -> None:
    """Mutating webhooks run one after the other. Some clients of API servers, such as leader elections, wait for ten
    seconds only."""
    objects = rendered(chart)
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    # the deletion webhooks are called for Namespaces and CustomResourceDefinitions only
    sorts = [[each for each in the(objects, kind)["webhooks"] if "namespaceSelector" in each] for kind in kinds]
    for found in sorts:
        asked = [tuple(rule["apiGroups"] + rule["resources"]) for webhook in found for rule in webhook["rules"]]
        assert len(asked) == len(set(asked))
    twice, once = (max(webhook["timeoutSeconds"] for webhook in found) for found in sorts)
    assert 2 * twice + once < 10, "the mutating webhook may be called twice (reinvocation)"


def test_processes_accept_the_arguments_of_the_chart(objects: list[Object]) -> None:
    processes = {
        "certgen": certgen.command.app,
        "gatekeeper": gatekeeper.__main__.app,
        "reconciler": reconciler.__main__.app,
    }
    for name, container in all_containers(objects).items():
        python, module, *rest = [*container["command"], *container["args"]]
        assert (python, module) == ("python", "-m")
        own, *arguments = rest[1:] if rest[0] == "altershield.process.restarts" else rest
        assert own == name
        parsed(processes[own], arguments)
    (check,) = [obj["spec"]["containers"][0] for obj in objects if obj["kind"] == "Pod"]
    assert check["command"] == ["python", "-m", "command", "check"]
    parsed(app.command_line(), ["check", *check["args"]])


def test_certgen_commands_in_the_container_use_the_settings_of_certgen_run(
    objects: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    container = containers(the(objects, "Deployment"))["certgen"]
    own = {name: value for name, value in variables(container).items() if name.startswith("ALTERSHIELD_")}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    run = parsed(certgen.command.app, container["args"])
    known = {str(option.envvar) for option in run.command.params if isinstance(option, TyperOption)}
    assert own.keys() <= known
    for command in ("show", "rotate"):
        params = parsed(certgen.command.app, [command]).params
        assert {name: params[name] for name in params.keys() & run.params} == {
            name: run.params[name] for name in params.keys() & run.params
        }


@pytest.mark.parametrize(
    ("release", "values", "account"),
    [
        ("altershield", {}, "altershield"),
        ("gate", {}, "gate-altershield"),
        ("gate", {"reconciler": {"separate": True}}, "gate-altershield-reconciler"),
        ("gate", {"serviceAccount": {"name": "mine"}}, "mine"),
        ("gate", {"reconciler": {"separate": True, "serviceAccount": {"name": "theirs"}}}, "theirs"),
    ],
)
def test_gatekeeper_and_policies_get_the_service_account_of_the_reconciler(
    chart: helm_python.Chart, release: str, values: Object, account: str
) -> None:
    objects = rendered(chart, values, release=release)
    user = service_account_user(name=account)
    (deployment,) = [obj for obj in of_kind(objects, "Deployment") if "reconciler" in containers(obj)]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert account in [obj["metadata"]["name"] for obj in of_kind(objects, "ServiceAccount")]
    assert f"--service-account={user}" in all_containers(objects)["gatekeeper"]["args"]
    of_accounts = [
        obj for obj in of_kind(objects, "ValidatingAdmissionPolicy") if "-protect-" not in obj["metadata"]["name"]
    ]
    conditions = [obj["spec"]["matchConditions"][0]["expression"] for obj in of_accounts]
    assert conditions
    assert all(f"'{user}'" in condition for condition in conditions)
    hooks = [obj["metadata"] for obj in objects if obj["kind"] == "ServiceAccount" and is_hook(obj)]
    (check,) = [each["name"] for each in hooks if "test" in each["annotations"]["helm.sh/hook"]]
    (gated,) = [obj for obj in of_kind(objects, "Deployment") if "gatekeeper" in containers(obj)]
    gatekeeper = gated["spec"]["template"]["spec"]["serviceAccountName"]
    own = policies.own_policies(service_account_user(name=gatekeeper), user, service_account_user(name=check))
    expected = [*own, *policies.deletion_policies()]
    assert [obj["spec"] for obj in expected if obj["kind"] == "ValidatingAdmissionPolicy"] == [
        obj["spec"] for obj in of_kind(objects, "ValidatingAdmissionPolicy")
    ]


def test_certificate_has_the_names_of_the_service(chart: helm_python.Chart) -> None:
    for values in ({}, {"issuerRef": {"name": "company", "kind": "ClusterIssuer"}}):
        objects = rendered(chart, {"certificates": {"mode": "cert-manager", **values}})
        (leaf,) = [obj for obj in of_kind(objects, "Certificate") if not obj["spec"].get("isCA")]
        service = the(objects, "Service")["metadata"]["name"]
        assert tuple(leaf["spec"]["dnsNames"]) == service_hosts(service, SYSTEM_NAMESPACE)
        environment = variables(containers(the(objects, "Deployment"))["certgen"])
        assert environment["ALTERSHIELD_SECRET"] == leaf["spec"]["secretName"]
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            injected = the(objects, kind)["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
            assert injected == f"{SYSTEM_NAMESPACE}/{leaf['metadata']['name']}"


def test_app_version_of_the_chart_matches_the_project(chart: helm_python.Chart) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert chart.metadata["appVersion"] == project["version"]
