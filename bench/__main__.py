"""`python -m bench`: lists the questions, or answers one or all of them."""

import sys

from altershield.process.startup import main
from bench.harness.asking import run

if __name__ == "__main__":
    main(lambda: run(sys.argv[1:]))
