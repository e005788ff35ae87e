"""The pages that people see in a browser: one module and one template for each, over the use cases of the routes."""
