"""The words that may occur in a text: word lists, matching, a user's own words, and vectors of words."""
