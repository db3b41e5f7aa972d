"""Integrations with spaCy, Transformers pipelines, scikit-learn and Label Studio, in separate modules."""
