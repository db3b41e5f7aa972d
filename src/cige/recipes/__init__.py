"""Recipes: the YAML files that ship, their names, and the reading of any recipe into checked settings."""
