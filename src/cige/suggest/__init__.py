"""Which sentences to label next: by what a model doubts, and by what the chosen ones do not say yet."""
