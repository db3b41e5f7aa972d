"""A model behind HTTP: `cige serve`, its API and its page; needs `pip install "cige[serve]"`."""
