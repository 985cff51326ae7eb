"""The tables and stored functions of this version, brought into a database that is fit for them."""
