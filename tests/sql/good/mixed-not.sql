SELECT COUNT(*) FROM T WHERE NOT (OS = 'Win' AND (Age > 30 OR Purchase > 3))
