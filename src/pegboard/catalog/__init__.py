"""What exists: the registry of all tools, and the discovery that fills it."""
