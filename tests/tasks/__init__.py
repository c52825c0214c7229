"""Tests of the task registry."""
