"""How questions are put and answered; knows nothing of geometry."""
