"""The controllers: what verifies releases, suspends what failed and rolls back what never came up."""
