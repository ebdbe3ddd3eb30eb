CREATE TABLE accounts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL UNIQUE,
    balance BIGINT NOT NULL CHECK (balance >= 0),
    frozen BOOLEAN NOT NULL,
    opened_at TIMESTAMPTZ NOT NULL,
    tags JSON NOT NULL
);
