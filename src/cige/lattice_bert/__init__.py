"""Lattice-BERT (Lai et al. 2021): its encoder, its pre-training, the tasks of the paper, and their commands.

This package uses the core of cige, which imports nothing from it (`cige.extensions`).
"""
