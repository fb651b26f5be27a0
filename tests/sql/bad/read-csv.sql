SELECT COUNT(*) FROM read_csv('/etc/passwd')
