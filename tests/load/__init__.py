"""Many threads, runs and processes at once, and processes that are killed."""
