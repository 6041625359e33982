#!/usr/bin/env bash
# Builds dist/kubectl-altershield, a folder with the kubectl plugin and a Python of its own, for the platform of this
# machine. It needs the packages of requirements.plugin.lock, and AlterShield, in the Python on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
pyinstaller --noconfirm --log-level WARN --onedir --name kubectl-altershield \
  --collect-submodules altershield --collect-submodules certgen --collect-submodules command \
  --collect-submodules reconciler --collect-data console \
  --copy-metadata altershield --specpath build --workpath build --distpath dist supply_chain/plugin.py
