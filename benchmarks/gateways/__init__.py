"""Pegboard beside other gateways, in one run: `python -m benchmarks.gateways`."""
