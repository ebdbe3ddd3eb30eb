CREATE TABLE barcodes (
    code TEXT NOT NULL PRIMARY KEY CHECK (length(code) <= 14),
    product_ean13 TEXT NOT NULL,
    factor INTEGER NOT NULL CHECK (factor > 0),
    assigned_at TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;
CREATE INDEX barcodes_by_product ON barcodes (product_ean13, code);
