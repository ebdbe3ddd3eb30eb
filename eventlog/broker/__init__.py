"""Other uses of the broker next to the log: work queue, presence, requests between processes, text streams, blobs."""
