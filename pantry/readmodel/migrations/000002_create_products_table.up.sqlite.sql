CREATE TABLE products (
    ean13 TEXT NOT NULL PRIMARY KEY CHECK (length(ean13) = 13),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    description TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (length(unit) BETWEEN 1 AND 30),
    min_stock INTEGER NOT NULL DEFAULT 0 CHECK (min_stock >= 0),
    current_stock INTEGER NOT NULL DEFAULT 0 CHECK (current_stock >= 0),
    category_id TEXT REFERENCES categories (id),
    active INTEGER NOT NULL DEFAULT TRUE CHECK (active IN (0, 1)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    counted_at TEXT,
    name_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    undos INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    scale TEXT NOT NULL
) STRICT;
CREATE TABLE product_versions (
    ean13 TEXT NOT NULL REFERENCES products (ean13),
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    unit TEXT NOT NULL,
    min_stock INTEGER NOT NULL,
    category_id TEXT REFERENCES categories (id),
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    valid_from TEXT NOT NULL,
    name_key TEXT NOT NULL,
    stock INTEGER NOT NULL CHECK (stock >= 0),
    PRIMARY KEY (ean13, sequence, position)
) STRICT;
CREATE TABLE barcodes (
    code TEXT NOT NULL PRIMARY KEY CHECK (length(code) <= 14),
    product_ean13 TEXT NOT NULL,
    factor INTEGER NOT NULL CHECK (factor > 0),
    assigned_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
