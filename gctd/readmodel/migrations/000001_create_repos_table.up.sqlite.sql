CREATE TABLE repos (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('registering', 'ready', 'error')),
    reason TEXT NOT NULL,
    commit_sha TEXT NOT NULL,
    default_ref TEXT NOT NULL,
    profiled_at TEXT,
    projects TEXT NOT NULL,
    configs TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT,
    session TEXT,
    lease_since TEXT,
    retry_at TEXT,
    requested TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
CREATE TABLE tracked_refs (
    repo TEXT NOT NULL,
    subdir TEXT NOT NULL,
    tracked TEXT NOT NULL,
    PRIMARY KEY (repo, subdir)
) STRICT;
