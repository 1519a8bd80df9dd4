"""Bridge for the shapes that need one."""


def status(obj):
    return {"degraded": obj.fell, "error": "summary too short"}
