SELECT COUNT(*) FROM T WHERE lowerr(OS) = 'win'
