"""What a segment must not lose, computed from its source rather than asked of a model."""
