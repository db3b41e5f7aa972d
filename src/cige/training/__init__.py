"""Recipes, training on transformers' Trainer, and the search for better settings; needs `pip install "cige[train]"`."""
