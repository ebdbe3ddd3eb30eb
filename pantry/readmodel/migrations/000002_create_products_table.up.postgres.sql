CREATE TABLE products (
    ean13 TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(ean13) = 13),
    name TEXT COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    description TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL CHECK (length(unit) BETWEEN 1 AND 30),
    min_stock BIGINT NOT NULL DEFAULT 0 CHECK (min_stock >= 0),
    current_stock BIGINT NOT NULL DEFAULT 0 CHECK (current_stock >= 0),
    category_id TEXT COLLATE "C" REFERENCES categories (id) DEFERRABLE INITIALLY DEFERRED,
    active BOOLEAN NOT NULL DEFAULT TRUE,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    counted_at TIMESTAMPTZ,
    name_key TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    undos BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    scale TEXT COLLATE "C" NOT NULL
);
CREATE TABLE product_versions (
    ean13 TEXT COLLATE "C" NOT NULL REFERENCES products (ean13) DEFERRABLE INITIALLY DEFERRED,
    sequence BIGINT NOT NULL,
    position BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    unit TEXT COLLATE "C" NOT NULL,
    min_stock BIGINT NOT NULL,
    category_id TEXT COLLATE "C" REFERENCES categories (id) DEFERRABLE INITIALLY DEFERRED,
    active BOOLEAN NOT NULL,
    valid_from TIMESTAMPTZ NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    stock BIGINT NOT NULL CHECK (stock >= 0),
    PRIMARY KEY (ean13, sequence, position)
);
CREATE TABLE barcodes (
    code TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(code) <= 14),
    product_ean13 TEXT COLLATE "C" NOT NULL,
    factor BIGINT NOT NULL CHECK (factor > 0),
    assigned_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL
);
