"""All errors that AlterShield reports to users, with the modules that define them (a test compares this list).

ReportedError                       (kube_base.errors)
├── UsageError                      an option, an environment variable or a file is invalid
├── KubernetesError                 (kube_base.access.errors) a request to the Kubernetes API failed
│   ├── UnreachableError            no complete answer: refused, timed out, TLS failed, connection cut
│   │   └── UnreadableError         an answer that cannot be decoded
│   │       └── SchemaError         an answer, or an object in it, of another schema than expected
│   └── ApiError                    an answer with a Status of another code than the following
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
├── AlterShieldServerError          (reconciler.server.server_errors) a call to an AlterShield server failed
│   ├── UnavailableError            no usable answer, or none at all
│   ├── RejectedError               the server refused the call
│   └── NotAllowedError             the server does not know the node, or the node is in another state
├── OutboundError                   (reconciler.outbound.outbound_errors) a request to a URL of a policy has no answer
│   ├── UrlNotAllowedError          the URL, or an address of its host, is not allowed
│   ├── NotDeliveredError           the request surely had no effect
│   ├── NoAnswerError               the request may have had an effect
│   ├── CredentialsError            a Secret with credentials cannot be used
│   └── SecretUnreadableError       the API server did not return a Secret
├── ReviewError                     (gatekeeper.errors) a request that the gatekeeper cannot review
├── EndpointError                   (reconciler.endpoints.endpoint_errors) a refused request to the callback port
├── CertificateError                (certgen.errors) a certificate, a key or its Secret cannot be used
├── InstallationStoppedError        (command.installation) a process of AlterShield did not start, or ended
├── StatusError                     (altershield.views.releases.model) the requested releases cannot be shown
├── RequestError                    (altershield.views.asking) a person's request was not carried out
├── ReportError                     (command.report) the report of releases cannot be made
├── StepFailedError                 (command.demo.story) a step of the demo failed
├── PolicyRefusedError              (command.policy.command) a DefensePolicy is not accepted
├── CheckFailedError                (command.check.waiting) AlterShield does not work in the cluster
├── NotSentError                    (command.notify) a receiver did not take the test notification
├── BreakerError                    (command.breaker.command) a breaker cannot be shown or changed
├── ProtectionError                 (command.protection.changing) a protection was not changed
├── GateError                       (altershield.views.gates.reading) a release gate cannot be shown or changed
├── BudgetError                     (altershield.views.budgets.reading) a budget cannot be shown
└── LeftOverError                   (command.uninstall) objects of AlterShield may still be in a cluster

Each message is one sentence: it says what happened to which object, and what to do.
"""
