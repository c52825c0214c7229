"""REST: the same answers as JSON, described by OpenAPI."""
