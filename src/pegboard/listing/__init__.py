"""What one client sees: its filter, its lists, what it has loaded, and notices when a list changes."""
