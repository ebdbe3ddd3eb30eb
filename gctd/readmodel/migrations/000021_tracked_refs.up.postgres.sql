CREATE TABLE tracked_refs (
    repo TEXT COLLATE "C" NOT NULL,
    subdir TEXT COLLATE "C" NOT NULL,
    tracked TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, subdir)
);
DROP INDEX analyses_by_project;
CREATE INDEX analyses_by_project ON analyses (repo_id, project, ref, measured DESC, sequence DESC);
