"""Prediction without PyTorch: cige's own runtime, and export to ONNX."""
