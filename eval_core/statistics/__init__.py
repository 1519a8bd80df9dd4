"""Tests on arrays of runs: permutation, exact counts, looks, clear losses."""
