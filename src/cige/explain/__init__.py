"""Why a model found what it found: the words it read, its attention, and what changes without a word."""
