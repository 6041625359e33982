"""The script from which PyInstaller builds the kubectl plugin."""

from altershield.commands import main

if __name__ == "__main__":
    main()
