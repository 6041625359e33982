"""The script of the end-to-end tests on kind, on the cluster of the documents."""

import pytest

from tests.docs.pages import ROOT
from tests.docs.shell import Shell

pytestmark = [pytest.mark.xdist_group("docs")]


def test_script_of_the_kind_workflow_passes(fresh: Shell) -> None:
    printed = fresh.run(f"bash {ROOT}/.ci/e2e altershield/altershield 0.1.0")
    assert printed.rstrip().endswith("\npassed"), printed
    assert printed.count("refused: ") == 3
