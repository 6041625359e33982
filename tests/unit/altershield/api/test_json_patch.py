"""Paths of labels in JSON patches."""

from altershield.api import labels
from altershield.api.json_patch import label_path


def test_label_path_escapes_slashes_and_tildes() -> None:
    assert label_path(labels.SUSPEND) == "/metadata/labels/altershield.defense.antgroup.com~1suspend"
    assert label_path("a/b~c") == "/metadata/labels/a~1b~0c"


def test_label_path_starts_with_the_path_of_the_labels() -> None:
    assert label_path("app", "/spec/template/metadata/labels") == "/spec/template/metadata/labels/app"
