CREATE TABLE barcodes (
    code TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(code) <= 14),
    product_ean13 TEXT COLLATE "C" NOT NULL,
    factor BIGINT NOT NULL CHECK (factor > 0),
    assigned_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL
);
CREATE INDEX barcodes_by_product ON barcodes (product_ean13, code);
