"""Labelled text: readers, writers, tag schemes, public data sets, and batches of tensors."""
