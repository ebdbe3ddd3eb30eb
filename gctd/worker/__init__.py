"""The worker: takes jobs, discovers projects, scans them, reports."""
