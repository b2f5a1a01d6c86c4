"""From labels and runs to a report: joined, measured, estimated, and qualified by what the labels are worth."""
