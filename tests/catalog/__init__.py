"""Tests of what exists: the registry, the discovery that fills it, and the checks at its door."""
