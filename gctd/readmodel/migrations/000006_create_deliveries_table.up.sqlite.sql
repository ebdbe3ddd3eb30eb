CREATE TABLE deliveries (
    id TEXT NOT NULL PRIMARY KEY,
    repo_id TEXT NOT NULL,
    commit_sha TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    received_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
