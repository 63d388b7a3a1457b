"""The commands, by panel of the help; what they need beyond the kernel they import inside their bodies."""
