"""Labels and runs, and their join: judged hits."""
