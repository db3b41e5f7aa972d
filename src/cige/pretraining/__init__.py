"""Pre-training on raw text: corpora to tokenised shards, shards to masked instances, instances to a model."""
