"""Lattice-BERT (Lai et al. 2021): the network, its heads, its inputs and its attention."""
