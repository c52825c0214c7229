"""Finding texts by words, and by meaning; what needs numpy is not loaded by what does not."""
