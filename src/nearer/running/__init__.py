"""Several processes that share a fit."""
