"""What an LLM makes of the sets that runs retrieve: answers, scores, controls, order and distraction."""
