"""Characters and the words that may stand over them, as one graph."""
