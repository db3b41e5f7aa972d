"""Models exported for ONNX Runtime: the folder, how it is made, and a model that reads it without PyTorch."""
