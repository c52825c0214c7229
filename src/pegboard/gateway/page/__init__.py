"""The page: what a browser is given at `/`. It is a client of REST and nothing more; everything it shows comes from
there, so what a rule hides is not there either."""
