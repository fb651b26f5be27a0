SELECT COUNT(*) FROM T WHERE Age > 200 OR (Age > -5 AND Salary < 1e9)
