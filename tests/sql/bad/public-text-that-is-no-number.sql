SELECT COUNT(*) FROM T WHERE Purchase > 'much'
