"""One module per verb: its docstring is the help text; `add_arguments(parser)` declares options, `run(args)` runs."""
