CREATE TABLE deliveries (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    repo_id TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL
);
