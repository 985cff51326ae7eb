"""The file operations that hive-acid does itself."""
