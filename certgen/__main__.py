"""`python -m certgen`."""

from certgen.command import main

if __name__ == "__main__":
    main()
