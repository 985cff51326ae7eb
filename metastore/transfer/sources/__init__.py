"""Where catalogue and ACID state come from: files, live metastores, their databases, and our own."""
