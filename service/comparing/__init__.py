"""Comparing two sides blind, and saying afterwards why one won.

blinding     takes out of a result whatever would tell whose it is
sides        what a run left, and which runs make a pair
blind        the question to the comparator, and its answer as comparison.json
contest      all answers together: who won each case, and the summary
analysis     after unblinding: why, and what to change
asking       puts a question to a model once: kept answers are found, unusable ones repaired once; kept: where
"""
