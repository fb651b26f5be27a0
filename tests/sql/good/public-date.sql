SELECT COUNT(*) FROM T WHERE Seen >= '2026-01-01' AND month(Seen) = 3 AND Age > 30
