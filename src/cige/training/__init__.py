"""Training taggers with recipes, and hyper-parameter search; requires `pip install "cige[train]"`."""
