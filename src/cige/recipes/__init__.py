"""Recipes: the YAML files that ship with cige, their names, and reading any recipe into checked settings."""
