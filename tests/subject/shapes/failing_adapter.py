def status(compressor):
    return {"degraded": getattr(compressor, "degraded", False)}
