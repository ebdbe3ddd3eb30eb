DROP TABLE verdicts;
ALTER TABLE analyses DROP COLUMN baseline;
