"""Every error that cige raises on purpose; each message says what was given, what was expected and what to do."""


class CigeError(ValueError):
    """Base of all errors that a user of cige can cause and mend."""


class DataError(CigeError):
    """A data file that cannot be read; the message names the file and the line."""


class LexiconError(CigeError):
    """A word list, lexicon folder or vector file that cannot be used."""


class ModelError(CigeError):
    """A model folder that is missing, damaged, foreign or does not fit its lexicon."""


class RecipeError(CigeError):
    """A recipe with an unknown key, a wrong type or contradictory settings."""
