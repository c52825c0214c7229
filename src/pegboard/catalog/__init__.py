"""The catalog: what exists. The registry of all tools, and the discovery that fills it."""
