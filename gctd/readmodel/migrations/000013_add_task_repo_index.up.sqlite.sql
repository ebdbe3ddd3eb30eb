CREATE INDEX tasks_by_repo ON tasks (repo_id, created_at DESC, id DESC);
