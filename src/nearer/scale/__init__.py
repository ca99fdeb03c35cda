"""Work that outgrows one process or its memory; other packages import it inside functions only."""
