"""Settings: loading, durations, the flags that they make."""
