"""Who asks: the client behind a request, what is known of it, and how it can be reached."""
