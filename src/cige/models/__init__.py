"""One file per model; each opens with its idea, the paper's sections and its deviations."""
