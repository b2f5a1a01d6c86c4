"""What goes in: ids, judgments, runs, grades, policies."""
