"""The HTTP port of the reconciler: callbacks of an AlterShield server and of receivers of `http` checks, and requests
of people's tools."""
