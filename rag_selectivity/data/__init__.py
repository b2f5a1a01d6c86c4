"""The input: ids, judgments, runs, grades, policies."""
