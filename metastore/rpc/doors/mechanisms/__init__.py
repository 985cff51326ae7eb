"""By what a client of SASL proves who it is."""
