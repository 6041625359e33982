"""The manifest of the kubectl plugin for krew."""

import hashlib
from pathlib import Path

import pytest
import yaml

from command.app import PLUGIN
from supply_chain import krew
from tests.supply_chain.locks import ROOT

ADDRESS = "https://example.com/v1.2.3"
PLATFORMS = ("linux-amd64", "linux-arm64", "darwin-arm64")


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    for platform in PLATFORMS:
        (tmp_path / krew.archive("1.2.3", platform)).write_bytes(platform.encode())
    return tmp_path


def test_manifest_has_the_address_and_the_checksum_of_each_archive(archives: Path) -> None:
    found = yaml.safe_load(krew.manifest("1.2.3", ADDRESS, archives))
    assert found["spec"]["version"] == "v1.2.3"
    platforms = {}
    for each in found["spec"]["platforms"]:
        selected = each["selector"]["matchLabels"]
        platforms[f"{selected['os']}-{selected['arch']}"] = each
        assert each["bin"] == f"{PLUGIN}/{PLUGIN}"
    assert tuple(platforms) == PLATFORMS
    for platform, each in platforms.items():
        assert each["uri"] == f"{ADDRESS}/{krew.archive('1.2.3', platform)}"
        assert each["sha256"] == hashlib.sha256(platform.encode()).hexdigest()


def test_manifest_meets_the_rules_of_krew(archives: Path) -> None:
    found = yaml.safe_load(krew.manifest("1.2.3", ADDRESS, archives))
    assert (found["apiVersion"], found["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert found["metadata"]["name"] == PLUGIN.removeprefix("kubectl-")
    assert set(found["spec"]) == {"version", "homepage", "shortDescription", "description", "platforms"}
    short = found["spec"]["shortDescription"]
    assert len(short) <= 50
    assert "kubectl" not in short
    assert not short.endswith(".")


def test_missing_archive_is_an_error(archives: Path) -> None:
    (archives / krew.archive("1.2.3", "darwin-arm64")).unlink()
    with pytest.raises(FileNotFoundError):
        krew.manifest("1.2.3", ADDRESS, archives)


def test_release_builds_an_archive_for_each_platform_of_the_manifest() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())
    built = [each["platform"] for each in workflow["jobs"]["plugin"]["strategy"]["matrix"]["include"]]
    assert tuple(built) == PLATFORMS
