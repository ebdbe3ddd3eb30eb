CREATE TABLE stocktakes (
    product_ean13 TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    position BIGINT NOT NULL,
    counted BIGINT NOT NULL CHECK (counted >= 0),
    difference BIGINT NOT NULL,
    movement_id TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    notes TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    sealed TEXT COLLATE "C",
    unit TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (sequence, position)
);
CREATE INDEX stocktakes_by_product ON stocktakes (product_ean13, sequence, position, created_at);
