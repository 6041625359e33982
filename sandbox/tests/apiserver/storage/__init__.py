"""The store, selectors and CustomResourceDefinitions."""
