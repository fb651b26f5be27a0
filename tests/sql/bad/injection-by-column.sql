SELECT SUM("Purchase"") FROM T; --") FROM T
