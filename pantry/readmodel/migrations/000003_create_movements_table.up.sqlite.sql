CREATE TABLE movements (
    id TEXT NOT NULL PRIMARY KEY CHECK (length(id) <= 36),
    product_ean13 TEXT NOT NULL REFERENCES products (ean13),
    type TEXT NOT NULL CHECK (type IN ('in', 'out')),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    reason TEXT NOT NULL CHECK (length(reason) <= 200),
    notes TEXT NOT NULL,
    created_by TEXT NOT NULL CHECK (length(created_by) <= 100),
    created_at TEXT NOT NULL,
    stock_after INTEGER NOT NULL CHECK (stock_after >= 0),
    reverses TEXT UNIQUE REFERENCES movements (id),
    counted INTEGER,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    sealed TEXT,
    unit TEXT NOT NULL,
    scale TEXT NOT NULL
) STRICT;
CREATE TABLE erasures (
    key_id TEXT NOT NULL PRIMARY KEY,
    erased_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
CREATE TABLE stocktakes (
    product_ean13 TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    counted INTEGER NOT NULL CHECK (counted >= 0),
    difference INTEGER NOT NULL,
    movement_id TEXT,
    reason TEXT NOT NULL,
    notes TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    sealed TEXT,
    unit TEXT NOT NULL,
    PRIMARY KEY (sequence, position)
) STRICT;
