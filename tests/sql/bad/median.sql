SELECT median(Purchase) FROM T
