"""HTTP requests and responses, encodings, discovery and OpenAPI."""
