"""A text with two entities, and the same as tokens and tags, as Hugging Face stores it."""

from __future__ import annotations

from cige.data.sentence import Span

TEXT = "😀张桂梅在云南"
SPANS = (Span(1, 4, "PER"), Span(5, 7, "LOC"))
HF = {"tokens": list(TEXT), "ner_tags": ["O", "B-PER", "I-PER", "I-PER", "O", "B-LOC", "I-LOC"]}
