DROP TABLE barcodes;
