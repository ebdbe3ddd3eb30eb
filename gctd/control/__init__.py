"""The control plane: what users ask for, jobs for workers, and what becomes of work whose worker is gone."""
