SELECT SUM(Purchase) FILTER (WHERE OS = 'Win') / SUM(Purchase) AS share FROM T WHERE Age < 40
