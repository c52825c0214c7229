"""Sign-in to servers (OAuth 2.1, as a client): discovery, registration, tokens."""
