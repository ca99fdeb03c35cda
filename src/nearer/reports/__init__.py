"""A result as a report for a paper: one page with all that a reader or reviewer asks for."""
