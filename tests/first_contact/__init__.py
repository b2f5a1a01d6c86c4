"""Four people who meet the package for the first time, each with a script of their own, in the folder of the sample."""
