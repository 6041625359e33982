"""What is stored and served: objects, resources, selectors."""
