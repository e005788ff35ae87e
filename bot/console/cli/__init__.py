"""The commands of `nexus`, in a file for each group."""
