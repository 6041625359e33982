"""The orders that are open on an AlterShield server: one of a release that is not followed any more is closed."""
