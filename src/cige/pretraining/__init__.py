"""Pre-training on raw text: corpora become tokenised shards, shards masked instances, and instances train a model."""
