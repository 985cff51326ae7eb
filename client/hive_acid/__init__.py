"""hive-acid: Hive's ACID tables without Hive. This package is the client; the daemon is `metastore`."""

from hive_acid.connection import Connection, connect
from hive_acid.login import DelegationToken, Kerberos, Login, Token
from hive_acid.tls import Tls

__all__ = ["Connection", "DelegationToken", "Kerberos", "Login", "Tls", "Token", "connect"]
__version__ = "0.1.0"
