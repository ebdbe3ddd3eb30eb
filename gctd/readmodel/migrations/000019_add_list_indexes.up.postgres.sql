CREATE INDEX analyses_by_url ON analyses (repo_url, project);
CREATE INDEX tasks_by_status ON tasks (status, created_at DESC, id DESC);
