SELECT Age, Age * 2 AS twice, COUNT(*) / Age AS odd FROM T GROUP BY Age
