"""Every exception AlterShield raises on purpose.

AlterShieldError
├── UsageError              an option, an environment variable or a manifest is wrong
├── KubernetesError         (altershield.kube.errors) talking to the Kubernetes API failed
│   ├── UnreachableError    no answer: refused, timed out, TLS, cut in mid-answer
│   └── ApiError            an answer with a Status
│       ├── BadRequestError, UnauthorizedError, ForbiddenError, NotFoundError, ...
├── ReviewError             (gatekeeper.errors) a request that is no AdmissionReview we can read
├── CertificateError        (certgen) a certificate or key that cannot be used
└── StepFailedError         (altershield.commands.demo) the release story did not come true

Each message is one sentence: what happened, to which object, what to do.
"""


class AlterShieldError(Exception):
    """Root of all errors. `exit_code` is what the `altershield` command ends with."""

    exit_code = 1


class UsageError(AlterShieldError):
    """The caller can mend it: a wrong option, variable or file."""

    exit_code = 2
