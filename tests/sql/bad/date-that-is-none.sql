SELECT COUNT(*) FROM T WHERE Joined > 'yesterday'
