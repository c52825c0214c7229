"""Pins: which definition of each tool, prompt and template is approved, and what becomes of one that differs."""
