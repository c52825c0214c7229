"""The fast path: plain requests of known clients, answered from bytes to bytes."""
