"""Drawings as SVG and PNG: parts of a page, the lattice of a sentence, and figures."""
