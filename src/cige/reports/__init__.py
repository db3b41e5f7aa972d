"""Several runs side by side: comparisons of systems and curves of pre-training, as data and as tables and figures."""
