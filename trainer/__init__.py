"""The trainer: learns from the replay store and publishes models; the only package that imports torch."""
