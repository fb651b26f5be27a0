SELECT VAR_POP(Purchase) FROM T WHERE State IN ('NY', 'CA')
