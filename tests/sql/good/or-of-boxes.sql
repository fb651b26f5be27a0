SELECT COUNT(*) FROM T
WHERE (Age < 30 AND Salary < 50000) OR (Age >= 20 AND Salary >= 40000)
