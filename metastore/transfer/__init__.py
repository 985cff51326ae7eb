"""Moving in and out: catalogue and ACID state from and to other metastores, their databases, and files."""
