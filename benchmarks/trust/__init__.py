"""The trials behind docs/trust.md, one module a table."""
