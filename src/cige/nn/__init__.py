"""Layers that more than one model uses.

The shape alphabet of the whole package, written as trailing comments: B batch, T characters, W words,
N = T + W lattice nodes, H heads, D width, U distinct relative spans of a batch, L tags, V vocabulary rows.
"""
