class Near:
    pass
