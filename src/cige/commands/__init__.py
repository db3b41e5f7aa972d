"""One file a verb: its docstring is the help, `add_arguments(parser)` declares options and sets `run`."""
