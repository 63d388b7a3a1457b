"""Kit review: what each turn of a game has lost, how sure that is, and what the rolls gave. No extra."""
