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
CREATE INDEX stocktakes_by_product ON stocktakes (product_ean13, sequence, position, created_at);
