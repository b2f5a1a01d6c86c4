"""Texts that try to instruct the judge: what is made harmless before it is sent, and the flag for people."""
