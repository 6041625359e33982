"""`python -m gatekeeper`: the admission webhook."""

import functools

from altershield.process.parameters import with_options
from altershield.process.quick_imports import quick_imports
from altershield.process.startup import main, run, single
from gatekeeper.options import Options


@with_options(Options)
def gatekeeper(options: Options) -> None:
    """Run the admission webhook: it reviews workloads before the API server stores them."""
    with quick_imports():  # the only connections are those to the API server, which have its CA
        from gatekeeper import process
    run(functools.partial(process.run, options), options.log_level)


app = single(gatekeeper)

if __name__ == "__main__":
    main(app)
