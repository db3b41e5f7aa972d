"""Explanations of predictions: the words that entities attended to, and what changes without a word."""
