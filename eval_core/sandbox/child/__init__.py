"""The part that runs inside the sandbox, under the target's own interpreter.

Only the standard library, Python 3.9 or newer, and only relative imports: the folder is mounted and
loaded under a private name, because nothing of the evaluator is visible there.
"""
