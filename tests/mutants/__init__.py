"""Deliberate faults in the source, to see whether the tests notice: `make mutants`."""
