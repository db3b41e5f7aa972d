"""An HTTP server for models: `cige serve`, its API and its page; requires `pip install "cige[serve]"`."""
