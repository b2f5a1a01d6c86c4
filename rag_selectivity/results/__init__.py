"""What comes out, as values."""
