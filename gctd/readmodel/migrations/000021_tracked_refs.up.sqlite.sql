CREATE TABLE tracked_refs (
    repo TEXT NOT NULL,
    subdir TEXT NOT NULL,
    tracked TEXT NOT NULL,
    PRIMARY KEY (repo, subdir)
) STRICT;
DROP INDEX analyses_by_project;
CREATE INDEX analyses_by_project ON analyses (repo_id, project, ref, measured DESC, sequence DESC);
