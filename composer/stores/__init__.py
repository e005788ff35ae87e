"""What is stored elsewhere and asked elsewhere: Postgres, Redis, models, embedders and tool servers."""
