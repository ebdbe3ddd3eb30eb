DROP INDEX stocktakes_by_product;
DROP INDEX barcodes_by_product;
DROP INDEX products_by_name;
DROP INDEX products_by_active;
DROP INDEX products_by_category;
DROP INDEX movements_by_place;
DROP INDEX movements_by_time;
DROP INDEX movements_by_product;
