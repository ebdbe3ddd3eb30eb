"""Small helpers of the log: timers, ids, histograms, trace context."""
