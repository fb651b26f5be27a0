SELECT COUNT(*) FROM T WHERE OS = 'Win' OR Age > 30 OR Purchase > 3
