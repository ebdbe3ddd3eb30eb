"""Small helpers of the log: digests, timers, ids, histograms, trace context."""
