"""Tasks for people who label pairs: what is drawn, the task, the answers, and how they come into a store."""
