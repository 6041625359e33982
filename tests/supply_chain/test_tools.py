"""The applications of the dependency group `tools`."""

import pytest

from supply_chain import tools


def test_application_that_is_not_installed_is_an_error_that_names_the_make_target() -> None:
    with pytest.raises(FileNotFoundError, match="absent does not exist: install it with `make tools`"):
        tools.find("absent")
