CREATE INDEX analyses_by_project ON analyses (repo_id, project, sequence DESC);
