"""scikit-learn faces of the algorithms, no mathematics."""
