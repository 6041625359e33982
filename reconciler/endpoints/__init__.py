"""The HTTP port of the reconciler: callbacks of an AlterShield server, and requests of people's tools."""
