"""Access: who somebody is to Pegboard (a principal), and what the rules let it do."""
