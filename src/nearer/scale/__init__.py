"""Work that outgrows one process or its memory; nothing outside imports this room at load time."""
