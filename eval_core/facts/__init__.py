"""Facts of a session: finding them, matching them in a text, and what became of them."""
