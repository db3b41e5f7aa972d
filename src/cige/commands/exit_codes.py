"""The exit codes of `cige`; the last two are those that shells use for the signals."""

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
