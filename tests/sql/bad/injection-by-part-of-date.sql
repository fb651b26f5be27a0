SELECT date_trunc('month''); DROP TABLE T; --', Seen), COUNT(*) FROM T GROUP BY 1
