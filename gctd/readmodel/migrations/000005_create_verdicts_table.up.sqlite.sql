CREATE TABLE verdicts (
    id TEXT NOT NULL PRIMARY KEY,
    repo_id TEXT NOT NULL,
    analysis_id TEXT NOT NULL,
    head_task TEXT NOT NULL,
    commit_sha TEXT NOT NULL,
    base TEXT NOT NULL,
    kind TEXT NOT NULL,
    base_commit TEXT NOT NULL,
    rules TEXT NOT NULL,
    result TEXT NOT NULL,
    base_task TEXT NOT NULL,
    checks TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    given_at TEXT,
    sequence INTEGER NOT NULL
) STRICT;
