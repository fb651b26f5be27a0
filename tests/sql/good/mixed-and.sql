SELECT COUNT(*) FROM T WHERE OS = 'Win' AND Age > 30 AND Purchase > 3
