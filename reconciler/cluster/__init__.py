"""What all subjects of the reconciler read and write: caches, the writer, the projections of AlterShield's objects."""
