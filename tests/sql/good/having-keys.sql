SELECT OS, State, COUNT(*) FROM T GROUP BY OS, State HAVING OS IN ('Win', 'iOS') AND NOT State = 'NY'
