"""What a person can see of what is stored about them, take with them, and change the reach of."""
