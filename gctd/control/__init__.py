"""The control plane: requests of users, jobs for workers, and recovery of the work of lost workers."""
