SELECT COUNT(*) FROM T WHERE Seen < current_date
