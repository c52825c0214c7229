"""Pegboard for Python programs: tools in providers' formats, with and without an event loop."""
