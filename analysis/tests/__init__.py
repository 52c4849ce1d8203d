"""Tests of what is computed before anything is drawn."""
