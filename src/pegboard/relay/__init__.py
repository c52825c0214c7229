"""The relay: carries what clients ask to servers, and what servers ask to clients, across both eras."""
