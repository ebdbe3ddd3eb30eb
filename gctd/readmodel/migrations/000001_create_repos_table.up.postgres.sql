CREATE TABLE repos (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    url TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('registering', 'ready', 'error')),
    reason TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C" NOT NULL,
    default_ref TEXT COLLATE "C" NOT NULL,
    profiled_at TIMESTAMPTZ,
    projects JSON NOT NULL,
    configs JSON NOT NULL,
    attempt BIGINT NOT NULL,
    worker TEXT COLLATE "C",
    session TEXT COLLATE "C",
    lease_since TIMESTAMPTZ,
    retry_at TIMESTAMPTZ,
    requested TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL
);
CREATE TABLE tracked_refs (
    repo TEXT COLLATE "C" NOT NULL,
    subdir TEXT COLLATE "C" NOT NULL,
    tracked TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repo, subdir)
);
