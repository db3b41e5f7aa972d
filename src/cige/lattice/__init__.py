"""Characters and the words that match them, as one graph."""
