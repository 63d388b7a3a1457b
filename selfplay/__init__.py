"""The self-play worker: plays forever, seals finished games into segments."""
