DROP TABLE verdicts;
