DROP TABLE stocktakes;
