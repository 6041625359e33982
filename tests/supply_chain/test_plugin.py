"""The kubectl plugin. PyInstaller finds modules that are imported, except those whose names are made at run time. It
finds no other files."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_plugin_has_what_is_found_at_run_time_only() -> None:
    by_name = [path for path in (ROOT / "command").rglob("*.py") if "import_module(" in path.read_text()]
    assert by_name == [ROOT / "command" / "app.py"]
    script = (ROOT / "supply_chain" / "plugin.sh").read_text()
    assert "--collect-submodules command " in script
    assert "--collect-data console " in script
