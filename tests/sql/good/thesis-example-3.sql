SELECT SUM(Purchase) FROM T WHERE State = 'NY'
