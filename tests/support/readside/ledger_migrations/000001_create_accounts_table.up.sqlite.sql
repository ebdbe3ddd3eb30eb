CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,
    balance INTEGER NOT NULL CHECK (balance >= 0),
    frozen INTEGER NOT NULL CHECK (frozen IN (0, 1)),
    opened_at TEXT NOT NULL,
    tags TEXT NOT NULL
) STRICT;
