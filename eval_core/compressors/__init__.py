"""The reference compressor and its strategies.

The package imports nothing but the standard library and itself, so that it can be lifted whole into
another tree and evaluated there like anybody else's compressor.
"""
