SELECT BUCKET(Age, 10) AS decade, COUNT(*) FROM T GROUP BY decade HAVING decade >= 30 OR COUNT(*) <> 0
