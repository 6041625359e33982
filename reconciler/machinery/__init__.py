"""The base of all controllers: the runner, metrics of queues and writes, and Events that follow from a status."""
