SELECT COUNT(*) FROM '/etc/passwd'
