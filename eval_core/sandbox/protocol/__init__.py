"""The protocols that agents speak to models, each as a pure translation to one chat request and back.

Standard library only: the process that reads a stranger's requests imports nothing else.
"""
