SELECT SUM(Purchase) / SUM(ActiveTime) AS per_hour FROM T WHERE Age < 25
