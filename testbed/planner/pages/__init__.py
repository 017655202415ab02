"""The page of planned networks: plan.html."""
