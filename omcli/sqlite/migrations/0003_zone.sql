-- Where a message was said, in minutes east of UTC; NULL where the producer does not tell, which most do not. Instants are
-- stored in UTC, and "yesterday", said at half past midnight in Berlin, is another day there.
--
-- From this step on `observations.refers_to` may also hold a year, or an interval of days or months with a slash.
ALTER TABLE messages ADD COLUMN utc_offset INTEGER;
