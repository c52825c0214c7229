"""Tests of large results."""
