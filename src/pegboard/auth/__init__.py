"""Authentication: who is behind a request, by the connection it comes on or by its bearer token."""
