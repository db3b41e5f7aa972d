"""Explanations of what a model found: the words it read, its attention, and what changes without a word."""
