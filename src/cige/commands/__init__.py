"""One module per verb: its docstring is the help text, and `add_arguments(parser)` declares options and sets `run`."""
