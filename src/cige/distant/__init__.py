"""New types of entity from word lists and raw text: which listed words to believe, and rounds of training on them."""
