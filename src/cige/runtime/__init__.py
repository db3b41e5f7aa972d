"""Prediction without PyTorch: the runtime that reads model folders, and export to ONNX."""
