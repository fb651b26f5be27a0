SELECT COUNT(*) FROM T WHERE (OS = 'Win' AND Age > 30) OR (OS = 'iOS' AND State = 'NY')
