SELECT COUNT(*) FROM T WHERE OS = read_text('/etc/passwd')
