CREATE TABLE workers (
    id TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    running INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
