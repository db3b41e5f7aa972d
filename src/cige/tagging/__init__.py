"""Prediction with taggers: split texts into windows, build lattices, score spans, merge them into entities."""
