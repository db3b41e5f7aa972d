"""The training engine: the training loop, checkpoints and history for all kinds of training (see `trainer`)."""
