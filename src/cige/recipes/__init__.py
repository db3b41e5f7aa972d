"""Recipes: the built-in YAML files, their names, and reading any recipe into checked settings."""
