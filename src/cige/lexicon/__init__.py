"""Which words could be in a text: word lists, matching, a user's own words, and the vectors of words."""
