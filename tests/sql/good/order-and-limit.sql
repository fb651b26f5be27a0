SELECT OS, State, SUM(Purchase) AS total FROM T GROUP BY OS, State ORDER BY total DESC, State LIMIT 5 OFFSET 10
