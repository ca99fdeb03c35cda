"""Where files, clocks and threads are: an asking and whoever answers it, put together."""
