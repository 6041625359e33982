"""The script from which PyInstaller builds the kubectl plugin."""

from command import main

if __name__ == "__main__":
    main()
