"""The pages of the documentation: which there are, and those that are written from the code."""
