"""All writers beside another client that alters, moves or drops what they write to."""
