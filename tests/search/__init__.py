"""Tests of how a tool is found."""
