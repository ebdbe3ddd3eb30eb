ALTER TABLE analyses DROP COLUMN sandbox;
