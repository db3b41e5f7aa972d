"""Measurements of cige; `python -m benchmarks` lists them. They are part of the source tree, not of the package."""
