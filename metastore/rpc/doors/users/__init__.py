"""Who users are: files of passwords, directories, tokens, and who may act for whom."""
