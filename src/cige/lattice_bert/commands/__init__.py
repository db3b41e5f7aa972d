"""The commands `cige lattice-bert ...`."""
