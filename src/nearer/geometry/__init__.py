"""What rankings tell; asks nothing."""
