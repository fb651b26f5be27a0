COPY T TO 'all.csv'
