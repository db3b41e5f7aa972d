"""Reports on several runs: comparisons of systems and curves of pre-training, as data, tables and figures."""
