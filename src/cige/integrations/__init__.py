"""cige inside other tools: spaCy, Transformers pipelines, scikit-learn and Label Studio, each imported on its own."""
