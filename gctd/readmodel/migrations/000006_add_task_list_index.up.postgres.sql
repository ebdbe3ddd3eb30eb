CREATE INDEX tasks_by_created_at ON tasks (created_at DESC, id DESC);
