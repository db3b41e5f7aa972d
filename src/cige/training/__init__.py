"""Training taggers by recipes, and the search for better settings; needs `pip install "cige[train]"`."""
