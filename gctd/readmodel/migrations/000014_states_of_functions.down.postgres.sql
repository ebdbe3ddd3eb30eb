ALTER TABLE analyses DROP COLUMN source;
ALTER TABLE analyses DROP COLUMN platform;
ALTER TABLE analyses DROP COLUMN states;
ALTER TABLE analyses DROP COLUMN known;
