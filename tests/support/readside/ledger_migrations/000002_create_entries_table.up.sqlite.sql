CREATE TABLE entries (
    account TEXT NOT NULL REFERENCES accounts (id),
    number INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    memo TEXT,
    at TEXT NOT NULL,
    rate REAL,
    PRIMARY KEY (account, number)
) STRICT;
