"""Distant supervision: learn new entity types from noisy word lists and raw text, in several rounds of training."""
