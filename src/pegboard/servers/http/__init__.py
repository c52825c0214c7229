"""The HTTP/1.1 client that calls to servers go through."""
