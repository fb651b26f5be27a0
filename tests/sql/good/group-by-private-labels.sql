SELECT State, AVG(Purchase) FROM T GROUP BY State
