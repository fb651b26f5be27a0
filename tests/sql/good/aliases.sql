SELECT COUNT(*) AS people, SUM(Purchase) total FROM T AS t1 WHERE t1.Age > 30 AND T.OS = 'iOS'
