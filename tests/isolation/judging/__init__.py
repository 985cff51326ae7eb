"""What a history says: whether its clients saw what snapshot isolation allows."""
