-- how many
SELECT COUNT(*) /* all */ FROM T;
