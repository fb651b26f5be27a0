SELECT COUNT(*), SUM(Purchase), AVG(Purchase), AVG(ActiveTime) FROM T WHERE Age >= 30
