"""Any source becomes rows and columns."""
