SELECT COUNT(*) FROM T JOIN others ON T.OS = others.OS
