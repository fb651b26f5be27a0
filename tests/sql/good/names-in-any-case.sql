select sum(PURCHASE) from t where AGE = 30 and "state" = 'NY' and os = 'Win'
