ALTER TABLE tasks ADD COLUMN commit_sha TEXT;
ALTER TABLE tasks ADD COLUMN rescored_from TEXT;
ALTER TABLE analyses ADD COLUMN rescored_from TEXT;
ALTER TABLE analyses ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
DROP INDEX analyses_by_project;
CREATE INDEX analyses_by_project ON analyses (repo_id, project, measured DESC, sequence DESC);
DROP INDEX analyses_by_analysis_id;
CREATE INDEX analyses_by_analysis_id ON analyses (analysis_id, measured DESC, sequence DESC);
CREATE INDEX tasks_alive_by_repo ON tasks (repo_id) WHERE status IN ('queued', 'pending', 'running');
