"""The API that users see: kinds, labels, states and names. This package has values only and does no I/O."""
