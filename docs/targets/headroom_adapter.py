"""headroom: take the messages out of the result object."""


def compress(function, messages, call):
    """Call the function with the spec's keywords."""
    return function(messages, **call).messages
