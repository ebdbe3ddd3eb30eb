DROP INDEX tasks_alive_by_repo;
DROP INDEX analyses_by_analysis_id;
CREATE INDEX analyses_by_analysis_id ON analyses (analysis_id, sequence DESC);
DROP INDEX analyses_by_project;
CREATE INDEX analyses_by_project ON analyses (repo_id, project, sequence DESC);
ALTER TABLE analyses DROP COLUMN measured;
ALTER TABLE analyses DROP COLUMN rescored_from;
ALTER TABLE tasks DROP COLUMN rescored_from;
ALTER TABLE tasks DROP COLUMN commit_sha;
