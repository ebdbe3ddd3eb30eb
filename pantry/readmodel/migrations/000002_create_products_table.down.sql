DROP TABLE barcodes;
DROP TABLE product_versions;
DROP TABLE products;
