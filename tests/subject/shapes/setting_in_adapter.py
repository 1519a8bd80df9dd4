"""An adapter that knows when the agent around the compressor sets it in motion."""


def should_compress(compressor, messages, tokens):
    return tokens >= 150_000
