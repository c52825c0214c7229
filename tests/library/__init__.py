"""Pegboard as a library."""
