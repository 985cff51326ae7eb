"""The ACID format as pure functions: names, partitions, snapshots, directory state, row events.

Nothing here opens a file or a connection, and nothing but the standard library is needed.
"""
