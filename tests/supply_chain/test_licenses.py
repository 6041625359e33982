"""The licences of everything that the image installs."""

from importlib.metadata import distribution

import pytest

from supply_chain.licenses import closure, is_allowed, requirements


def test_licences_of_all_packages_are_allowed() -> None:
    assert [each for each in closure() if not is_allowed(each.license)] == []


def test_packages_of_extras_are_not_part_of_the_product() -> None:
    assert "pytest" not in set(requirements(distribution("altershield")))


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 AND BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR GPL-3.0-only)", True),
        ("GPL-3.0-only AND (Apache-2.0 OR MIT)", False),
        ("GPL-3.0-only AND Apache-2.0 OR GPL-2.0-only", False),
        ("MIT AND LGPL-3.0-or-later", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("MIT WITH any-exception", False),
        ("(MIT", False),
        ("MIT)", False),
        ("MIT AND", False),
        ("Other/Proprietary License", False),
        ("not given", False),
        ("", False),
    ],
)
def test_expression_is_allowed_if_the_identifiers_that_it_needs_are(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed
