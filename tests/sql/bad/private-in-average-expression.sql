SELECT AVG(Purchase * Age) FROM T
