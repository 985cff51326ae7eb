"""The command that gives users passwords, in the file that `metastore.authentication.password.file` names."""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Any

from metastore.rpc.doors.users import passwords
from metastore.settings import SettingError


def add_commands(commands: Any) -> None:
    """Add the command to those of the parser."""
    parser = commands.add_parser(
        "passwd",
        help="give a user a password, in a file for metastore.authentication=password",
        description="Asks for the password twice, or takes the first line of the input if that is no terminal. A "
        "running server reads the file again by itself.",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the file; made if it is not there")
    parser.add_argument("user", metavar="USER", help="whose password")
    parser.add_argument("--delete", action="store_true", help="take the user out instead")
    parser.set_defaults(run=_passwd)


def _passwd(options: argparse.Namespace) -> int:
    passwords.change(options.file, options.user, None if options.delete else _asked())
    print(f"{options.user} {'is out of' if options.delete else 'has a password in'} {options.file}")
    return 0


def _asked() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise SettingError("these are two passwords: nothing was changed")
    return password
