"""The tables and figures of "Revealing the Basis", computed again and set beside the paper's."""
