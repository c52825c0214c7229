"""Pegboard for Python programs: tools in providers' forms, with and without an event loop."""
