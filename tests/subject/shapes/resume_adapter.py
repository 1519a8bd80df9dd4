"""Save and restore an instance, so that a retry goes on after the last good step."""


def get_state(obj):
    return {"calls": obj.calls, "seen": obj.seen}


def set_state(obj, state):
    obj.calls, obj.seen = state["calls"], state["seen"]


def compress(obj, messages, call):
    import shapes

    if obj.calls:
        shapes.ask()
    else:
        shapes.ask(model="first")
    return obj.compress(messages)
