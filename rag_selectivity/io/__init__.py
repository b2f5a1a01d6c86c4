"""Reading labels, runs and corpora."""
