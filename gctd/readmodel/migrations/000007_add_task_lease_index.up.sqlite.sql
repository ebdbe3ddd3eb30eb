CREATE INDEX tasks_alive ON tasks (status, waiting_since) WHERE status IN ('queued', 'pending', 'running');
