"""Grading pools with an LLM judge: rubric and prompts, judges, the runner, the label store, claim checks.

The store needs the standard library alone; whatever asks a judge needs the extra `[judge]`.
"""
