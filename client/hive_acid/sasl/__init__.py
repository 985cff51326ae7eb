"""SASL as Thrift has it (wire.md §2.6): mechanisms by which we come in, and the frames behind them."""
