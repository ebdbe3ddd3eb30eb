CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,
    balance INTEGER NOT NULL CHECK (balance >= 0),
    frozen BOOLEAN NOT NULL,
    opened_at TEXT NOT NULL,
    tags TEXT NOT NULL
);
