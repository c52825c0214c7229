"""The pictures of the documentation, made by the real commands, the real page and the text of the diagrams."""
