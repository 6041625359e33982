"""A command `helm` with the subcommands and options of the documents, on the real Helm engine.

An unknown option is an error, so that every option in a page is tested.
"""

import argparse
import sys
from typing import Any

import helm_python
from helm_python import config

_SECONDS = 120


def main(arguments: list[str]) -> None:
    parsed = command_parser().parse_args(arguments, argparse.Namespace(namespace="default"))
    helm = helm_python.Config(namespace=parsed.namespace)
    match parsed.command:
        case "install" | "upgrade":
            values = _values(parsed)
            wait = "watcher" if parsed.wait else None
            if parsed.command == "install" or (parsed.install and parsed.name not in _releases(helm)):
                helm.install(
                    parsed.chart,
                    parsed.name,
                    values,
                    create_namespace=parsed.create_namespace,
                    timeout=_SECONDS,
                    wait=wait,
                )
            else:
                # the engine accepts these two options, but its Python binding does not pass them on
                more = {
                    "force_conflicts": parsed.force_conflicts,
                    "reset_then_reuse_values": parsed.reset_then_reuse_values,
                }
                known = config._opts
                config._opts = lambda **options: known(**options, **more)
                helm.upgrade(parsed.chart, parsed.name, values, timeout=_SECONDS, wait=wait)
        case "rollback":
            helm.rollback(parsed.name, version=parsed.revision, timeout=_SECONDS)
        case "uninstall":
            helm.uninstall(parsed.name, timeout=_SECONDS)
        case "history":
            for each in helm.history(parsed.name):
                print(each["revision"], each["status"])
        case "test":
            print("Phase:", helm.test(parsed.name, timeout=_SECONDS)["release"]["status"])
        case "lint":
            report = helm_python.lint(parsed.chart, strict=parsed.strict)
            sys.exit("\n".join(report["errors"]))
        case "template":
            with helm_python.Chart.load(parsed.chart) as chart:
                manifests = chart.render(_values(parsed), name=parsed.name, namespace=parsed.namespace)
            print("\n---\n".join(text for path, text in manifests.items() if _is_shown(path, parsed.skip_tests)))


def _releases(helm: helm_python.Config) -> set[str]:
    return {each["name"] for each in helm.list(all_states=True)}


def _is_shown(path: str, skip_tests: bool) -> bool:
    return path.endswith(".yaml") and not (skip_tests and "/templates/tests/" in path)


def _values(parsed: argparse.Namespace) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for path in parsed.values:
        with open(path) as file:
            _merge(values, helm_python.values_from_yaml(file.read()))
    for expression in parsed.set:
        _merge(values, helm_python.parse_set_string(expression))
    return values


def _merge(values: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            _merge(values[key], value)
        else:
            values[key] = value


def command_parser() -> argparse.ArgumentParser:
    namespace = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    namespace.add_argument("-n", "--namespace")
    values = argparse.ArgumentParser(add_help=False)
    values.add_argument("-f", "--values", action="append", default=[])
    values.add_argument("--set", action="append", default=[])
    parser = argparse.ArgumentParser(prog="helm", parents=[namespace], allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("install", "upgrade", "template"):
        command = commands.add_parser(name, parents=[namespace, values], allow_abbrev=False)
        command.add_argument("name")
        command.add_argument("chart")
        if name == "template":
            command.add_argument("--skip-tests", action="store_true")
            continue
        command.add_argument("--create-namespace", action="store_true")
        command.add_argument("--wait", action="store_true")
        if name == "upgrade":
            for option in ("--install", "--force-conflicts", "--reset-then-reuse-values"):
                command.add_argument(option, action="store_true")
    for name in ("rollback", "uninstall", "history", "test"):
        command = commands.add_parser(name, parents=[namespace], allow_abbrev=False)
        command.add_argument("name")
        if name == "rollback":
            command.add_argument("revision", type=int, nargs="?")
    lint = commands.add_parser("lint", allow_abbrev=False)
    lint.add_argument("chart")
    lint.add_argument("--strict", action="store_true")
    return parser


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except helm_python.HelmError as error:
        sys.exit(f"Error: {error}")
