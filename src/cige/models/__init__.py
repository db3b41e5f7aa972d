"""One module per model; its docstring has the idea, the sections of the paper and the deviations from it."""
