"""Every error of hive-acid, one sentence each; the sentence is the message.

Errors below `MetastoreError` travel over Thrift: ``thrift_name`` is the exception struct of the IDL that
carries them. The server raises them, its RPC wrapper encodes them, and the client raises them again.
"""

from __future__ import annotations

from typing import ClassVar


class HiveAcidError(Exception):
    """Root of all errors raised by hive-acid."""


# --- carried over Thrift -------------------------------------------------------------------------


class MetastoreError(HiveAcidError):
    """An error with a Thrift exception of its own."""

    thrift_name: ClassVar[str] = "MetaException"


class MetaError(MetastoreError):
    """The metastore refuses a request or cannot serve it."""


class AccessDeniedError(MetaError):
    """The metastore enforces rights, and the call takes one that its user has not."""


class NoSuchTxnError(MetastoreError):
    """The transaction is unknown, or already committed where an open one is needed."""

    thrift_name = "NoSuchTxnException"


class TxnAbortedError(MetastoreError):
    """The transaction is aborted."""

    thrift_name = "TxnAbortedException"


class TxnOpenError(MetastoreError):
    """The lock belongs to an open transaction and ends with it."""

    thrift_name = "TxnOpenException"


class NoSuchLockError(MetastoreError):
    """The lock id is unknown."""

    thrift_name = "NoSuchLockException"


class NoSuchCompactionError(MetastoreError):
    """The compaction id is unknown."""

    thrift_name = "NoSuchCompactionException"


class NoSuchObjectError(MetastoreError):
    """The database, table or partition does not exist."""

    thrift_name = "NoSuchObjectException"


class AlreadyExistsError(MetastoreError):
    """The object exists already."""

    thrift_name = "AlreadyExistsException"


class InvalidObjectError(MetastoreError):
    """The object's definition is not acceptable."""

    thrift_name = "InvalidObjectException"


class InvalidOperationError(MetastoreError):
    """The operation is not allowed on this object."""

    thrift_name = "InvalidOperationException"


class InvalidInputError(MetastoreError):
    """The request's input is not acceptable."""

    thrift_name = "InvalidInputException"


class UnknownDBError(MetastoreError):
    """The database does not exist."""

    thrift_name = "UnknownDBException"


class UnknownTableError(MetastoreError):
    """The table does not exist."""

    thrift_name = "UnknownTableException"


class ConfigValSecurityError(MetastoreError):
    """The configuration value may not be read."""

    thrift_name = "ConfigValSecurityException"


THRIFT_ERRORS: dict[str, type[MetastoreError]] = {error.thrift_name: error for error in MetastoreError.__subclasses__()}
"""Thrift exception name to the error that stands for it."""


# --- the connection ------------------------------------------------------------------------------


class AddressError(HiveAcidError, ValueError):
    """What was given is not the address of a metastore."""


class MetastoreUnreachableError(HiveAcidError):
    """No answer from the metastore at the given address."""


class LoginError(HiveAcidError):
    """The metastore does not let us in."""


class AnswersMixedError(MetastoreUnreachableError):
    """The answer that came is that to another call; what this one has done is not known."""


class OtherProcessError(HiveAcidError):
    """What was used is of the process that forked this one, which may be using it: make another one here."""


class UnknownMethodError(HiveAcidError):
    """The metastore does not serve this method."""


class MetastoreInternalError(HiveAcidError):
    """The metastore failed inside this call; its log has the cause."""


# --- the files -----------------------------------------------------------------------------------


class FormatError(HiveAcidError):
    """A directory or file breaks the rules of the format."""


class NameTooLongError(HiveAcidError, OSError):
    """The file system has no room for so long a name or path."""


class StorageError(HiveAcidError, OSError):
    """Files of a statement could not be written or read, as on a disk that is full; nothing of it is stored."""


class NoFilesError(HiveAcidError, FileNotFoundError):
    """There are no files where a statement is to take some from."""


class FilesInTheWayError(HiveAcidError, FileExistsError):
    """There are files where a statement is to write its own."""


class NotEnoughHistoryError(FormatError):
    """The snapshot is older than the oldest base that is left."""


# --- the client ----------------------------------------------------------------------------------


class WriteConflictError(HiveAcidError):
    """Another transaction changed the same data first; this one is aborted."""


class SnapshotOutdatedError(WriteConflictError):
    """The data was changed before the transaction had its lock, and had read any of it."""


class SnapshotEndedError(HiveAcidError):
    """Files that a frame reads are gone, since its snapshot has ended: take the table again."""


class TableNotNamedError(HiveAcidError):
    """The transaction has said which tables it uses, and this is none of them."""


class TransactionClosedError(HiveAcidError):
    """The transaction has ended: begin another one."""


class TransactionExpiredError(TransactionClosedError):
    """The metastore aborted the transaction because its heartbeats stopped."""


class LockTimeoutError(HiveAcidError):
    """The lock was not free within the time that the caller gave."""


class TransactionInTheWayError(LockTimeoutError):
    """The thread that waits is in another transaction that is in the way, which so cannot end before."""


class SnapshotInTheWayError(LockTimeoutError):
    """The thread that asks for the lock reads the table itself, so it would wait for nothing."""


class OtherDatabaseError(HiveAcidError):
    """The name is not of the current database, and in another one it would mean something else: give that, too."""


class TableNotAcidError(HiveAcidError):
    """The table is not a full-ACID table."""


class ViewError(TableNotAcidError):
    """A table was asked for where a view is, which has no rows of its own, or a view where a table is."""


class TableChangedError(HiveAcidError):
    """The name means another table by now, or the table was changed in a way that a statement cannot follow."""


class SparkStoppedError(HiveAcidError):
    """The Spark session has been stopped: make a new one, and a new session of hive-acid with it."""


class TransactionsOffError(HiveAcidError):
    """The session works without transactions (DummyTxnManager), which ACID tables need."""


class UnsupportedTableError(HiveAcidError):
    """The table has a feature that hive-acid does not write yet."""


class ColumnError(HiveAcidError):
    """A column is unknown, has the wrong type or may not be assigned."""


class ConstraintError(ColumnError):
    """A row breaks a NOT NULL or a CHECK of its table."""


class DuplicateKeyError(ConstraintError):
    """Rows have the same values as others, or none, in the primary key of their table."""


class SqlError(HiveAcidError):
    """A SQL text is not understood, or asks for what hive-acid does not do."""


class ScriptError(HiveAcidError):
    """A statement of a script has failed, its `number`, which begins in the line `line`; those before it are done."""

    def __init__(self, message: str, number: int, line: int) -> None:
        super().__init__(message, number, line)
        self.number, self.line = number, line

    def __str__(self) -> str:
        return str(self.args[0])


class NotCountedError(HiveAcidError):
    """Spark has not told how many rows a job has written, since it lost the event of it."""


class MergeCardinalityError(HiveAcidError):
    """A target row of a MERGE matches more than one source row."""


class CompactionFailedError(HiveAcidError):
    """A compaction that was waited for has failed, or did not end in time."""


class TimeZoneMismatchError(HiveAcidError):
    """Spark's session time zone differs from the JVM's, so timestamps would shift."""


# --- streams -------------------------------------------------------------------------------------


class StreamingError(HiveAcidError):
    """A stream cannot do what it was asked to."""


class StreamingConnectionError(StreamingError):
    """No stream can be opened: the metastore does not answer, or the table is none to stream into."""


class InvalidTransactionStateError(StreamingError):
    """A stream's call that is out of order, as a write outside of a transaction."""


class SerializationError(StreamingError):
    """A record cannot be stored as a row of the table; none of those given in the same call is taken."""


class StreamingTransactionError(StreamingError):
    """A stream's transaction could not be begun or has been aborted; its rows are not in the table."""


class StreamFencedError(StreamingError):
    """Another writer has written a batch of this stream: two use its name, or batches count from the start again."""
