SELECT 100.0 * (SUM(Purchase) - 5) / -COUNT(*) + SQRT(ABS(SUM(ActiveTime))) FROM T
