"""The tracker's streams and buckets on NATS: log, jobs, presence of workers, logs of attempts, blobs of large bodies."""
