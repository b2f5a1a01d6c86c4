"""Scenarios whose figures are stored, a module a subject."""
