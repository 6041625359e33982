"""`python -m gatekeeper`: the admission webhook."""

import functools

from altershield.process.parameters import with_options
from altershield.process.startup import main, run, single
from gatekeeper import process
from gatekeeper.options import Options


@with_options(Options)
def gatekeeper(options: Options) -> None:
    """Run the admission webhook: it reviews workloads before the API server stores them."""
    run(functools.partial(process.run, options), options.log_level)


app = single(gatekeeper)

if __name__ == "__main__":
    main(app)
