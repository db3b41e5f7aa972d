"""Fine-tuning of Lattice-BERT: the paper's eleven tasks, their files, networks, scores and tables."""
