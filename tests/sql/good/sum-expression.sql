SELECT SUM(Purchase * ActiveTime - 2) FROM T WHERE Age > 50
