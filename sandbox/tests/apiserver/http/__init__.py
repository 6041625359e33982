"""Discovery, encodings and headers of the API server."""
