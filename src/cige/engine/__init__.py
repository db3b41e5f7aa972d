"""The training engine: one loop, its checkpoints and history, for everything that cige trains (see `trainer`)."""
