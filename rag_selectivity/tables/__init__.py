"""Any source as columns: files, frames, dicts and rows of labels, runs and tables."""
