"""The decision about all runs at one K: which system, which K, where the loss is, what next, and how far to trust it."""
