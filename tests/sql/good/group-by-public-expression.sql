SELECT date_trunc('month', Seen) AS month, OS || '!' AS loud, COUNT(*) FROM T GROUP BY month, loud
