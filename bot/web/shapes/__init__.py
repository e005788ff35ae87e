"""What the API takes and answers: its shapes, as its document shows them."""
