def draw(frame, folder):
    return []
