"""Requests that are recorded in the status of an object before they are answered: deletions that flow controls count,
and uses of overrides."""
