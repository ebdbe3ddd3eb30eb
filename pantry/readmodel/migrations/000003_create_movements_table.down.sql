DROP TABLE stocktakes;
DROP TABLE erasures;
DROP TABLE movements;
