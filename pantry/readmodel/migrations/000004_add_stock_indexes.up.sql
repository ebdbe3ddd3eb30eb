CREATE INDEX movements_by_product ON movements (product_ean13, sequence, position, created_at);
CREATE INDEX movements_by_time ON movements (created_at, sequence, position);
CREATE INDEX movements_by_place ON movements (sequence, position, created_at);
CREATE INDEX products_by_category ON products (category_id, name_key, ean13);
CREATE INDEX products_by_active ON products (active, name_key, ean13);
CREATE INDEX products_by_name ON products (name_key, ean13);
CREATE INDEX barcodes_by_product ON barcodes (product_ean13, code);
CREATE INDEX stocktakes_by_product ON stocktakes (product_ean13, sequence, position, created_at);
