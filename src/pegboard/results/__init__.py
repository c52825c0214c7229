"""Results that are too large for whoever called: a part is given, and the whole is kept for a while, to be read on."""
