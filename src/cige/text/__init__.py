"""What the user typed: normalisation that keeps offsets, and windows over long documents."""
