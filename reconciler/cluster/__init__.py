"""What all subjects of the reconciler read: the caches, and the projections of AlterShield's own objects."""
