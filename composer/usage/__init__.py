"""What model calls use: recorded by day, priced, and held within budgets."""
