CREATE TABLE categories (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) <= 36),
    name TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    description TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    sequence BIGINT NOT NULL
);
CREATE INDEX categories_by_name ON categories (name_key, id);
CREATE TABLE tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    used_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    sessions JSON NOT NULL,
    sequence BIGINT NOT NULL
);
