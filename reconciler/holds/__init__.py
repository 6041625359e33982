"""The holds that end because AlterShield lets go of a workload."""
