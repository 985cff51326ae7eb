"""``make demo``: the walk-through on real flights, each chapter ending in checks."""
