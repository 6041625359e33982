"""Every error that AlterShield has for its users, and where it is defined (a test compares).

AlterShieldError                    (altershield.errors)
├── UsageError                      an option, an environment variable or a file is wrong
├── KubernetesError                 (altershield.kube.errors) talking to the Kubernetes API failed
│   ├── UnreachableError            no answer, or a broken one: refused, timed out, TLS, cut in mid-answer
│   │   └── UnreadableError         an answer that is not what was asked for
│   └── ApiError                    an answer with a Status of another code than these:
│       ├── BadRequestError         400
│       ├── UnauthorizedError       401
│       ├── ForbiddenError          403
│       │   └── NamespaceTerminatingError  403, by its cause
│       ├── NotFoundError           404
│       ├── ConflictError           409
│       │   └── AlreadyExistsError  409, by its reason
│       ├── GoneError               410
│       ├── InvalidError            422
│       ├── TooManyRequestsError    429
│       └── ServerError             5xx
├── ReviewError                     (gatekeeper.errors) a request that is no AdmissionReview we can read
├── CertificateError                (certgen.errors) a certificate, a key or its Secret cannot be used
├── InstallationStoppedError        (altershield.commands.installation) a process of AlterShield did not start, or ended
├── StatusError                     (altershield.commands.status.snapshot) the releases asked for cannot be shown
├── StepFailedError                 (altershield.commands.demo.story) a step of the demo failed
├── CheckFailedError                (altershield.commands.check) a cluster's gate does not do what it should
├── LeftOverError                   (altershield.commands.uninstall) something of AlterShield may still be in a cluster
└── BackendError                    (altershield.commands.backend) the Kubernetes that a command started failed

Each message is one sentence: what happened, to which object, what to do.
"""


class AlterShieldError(Exception):
    """Root of all errors. `exit_code` is what the `altershield` command ends with."""

    exit_code = 1


class UsageError(AlterShieldError):
    """The caller can mend it: a wrong option, variable or file."""

    exit_code = 2
