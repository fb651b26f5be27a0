SELECT BUCKET(Age, 10) AS decade, COUNT(*) FROM T GROUP BY decade ORDER BY decade
