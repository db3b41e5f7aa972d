"""Prediction without PyTorch: export to ONNX and reading an exported folder."""
