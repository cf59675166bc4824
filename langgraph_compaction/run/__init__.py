"""Effects: calling the models that write digests, and driving the engine's steps."""
