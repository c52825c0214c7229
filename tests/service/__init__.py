"""The gateway as a service of each system."""
