DROP INDEX analyses_by_project;
CREATE INDEX analyses_by_project ON analyses (repo_id, project, measured DESC, sequence DESC);
DROP TABLE tracked_refs;
