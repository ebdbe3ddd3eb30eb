CREATE TABLE movements (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(id) <= 36),
    product_ean13 TEXT COLLATE "C" NOT NULL REFERENCES products (ean13) DEFERRABLE INITIALLY DEFERRED,
    type TEXT COLLATE "C" NOT NULL CHECK (type IN ('in', 'out')),
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    reason TEXT COLLATE "C" NOT NULL CHECK (length(reason) <= 200),
    notes TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL CHECK (length(created_by) <= 100),
    created_at TIMESTAMPTZ NOT NULL,
    stock_after BIGINT NOT NULL CHECK (stock_after >= 0),
    reverses TEXT COLLATE "C" UNIQUE REFERENCES movements (id) DEFERRABLE INITIALLY DEFERRED,
    counted BIGINT,
    sequence BIGINT NOT NULL,
    position BIGINT NOT NULL,
    sealed TEXT COLLATE "C",
    unit TEXT COLLATE "C" NOT NULL,
    scale TEXT COLLATE "C" NOT NULL
);
CREATE TABLE erasures (
    key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    erased_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL
);
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
