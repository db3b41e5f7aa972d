"""Pre-training on raw text: tokenise corpora to shards, create masked instances, and train a model on them."""
