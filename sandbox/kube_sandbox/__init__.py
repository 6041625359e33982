"""A Kubernetes to try the gate on: an API on loopback (`apiserver`) and simulated nodes and controllers
(`cluster`), which talk to any API. For the demo and the tests; never imported by the product."""
