CREATE TABLE categories (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 36),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    description TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    name_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
CREATE INDEX categories_by_name ON categories (name_key, id);
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    used_at TEXT,
    revoked_at TEXT,
    sessions TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
