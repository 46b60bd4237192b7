-- Records are found by their time; the index has their numbers, too.
CREATE INDEX records_at ON records (at);
