DROP TABLE erasures;
DROP TABLE movements;
