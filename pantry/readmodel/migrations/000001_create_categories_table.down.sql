DROP TABLE tokens;
DROP TABLE categories;
