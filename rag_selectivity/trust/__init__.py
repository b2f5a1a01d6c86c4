"""What labels are worth: placebos, controls, completions, and the agreement of judge and people."""
