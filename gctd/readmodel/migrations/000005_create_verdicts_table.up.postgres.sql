CREATE TABLE verdicts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    repo_id TEXT COLLATE "C" NOT NULL,
    analysis_id TEXT COLLATE "C" NOT NULL,
    head_task TEXT COLLATE "C" NOT NULL,
    commit_sha TEXT COLLATE "C" NOT NULL,
    base TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    base_commit TEXT COLLATE "C" NOT NULL,
    rules JSON NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    base_task TEXT COLLATE "C" NOT NULL,
    checks JSON NOT NULL,
    asked_at TIMESTAMPTZ NOT NULL,
    given_at TIMESTAMPTZ,
    sequence BIGINT NOT NULL
);
