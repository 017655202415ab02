"""The page of endpoints that were judged: matrix.html."""
