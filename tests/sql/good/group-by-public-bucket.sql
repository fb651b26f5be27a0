SELECT BUCKET(Purchase, 10) AS spent, BUCKET(Seen, INTERVAL '2' WEEKS) AS fortnight, COUNT(*) FROM T GROUP BY spent, fortnight
