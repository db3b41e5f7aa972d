"""Text processing: normalisation that preserves offsets, and windows over long documents."""
