"""An issuer of tokens (JWT) of the tests' own: its keys, and the file in which it tells the public ones."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm


class Issuer:
    """Keys of three kinds, and a file of them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.keys: dict[str, tuple[Any, str]] = {}
        self.told: dict[str, dict[str, Any]] = {}
        self.add("rsa")

    def add(self, name: str) -> None:
        kinds: dict[str, Callable[[], tuple[Any, str, Any]]] = {
            "r": lambda: (rsa.generate_private_key(65537, 2048), "RS256", RSAAlgorithm),
            "e": lambda: (ec.generate_private_key(ec.SECP256R1()), "ES256", ECAlgorithm),
            "o": lambda: (ed25519.Ed25519PrivateKey.generate(), "EdDSA", OKPAlgorithm),
        }
        key, algorithm, shape = kinds[name[0]]()
        self.keys[name] = key, algorithm
        self.told[name] = json.loads(shape.to_jwk(key.public_key())) | {"kid": name, "use": "sig"}
        self.write()

    def write(self) -> None:
        part = self.file.with_suffix(".new")
        part.write_text(json.dumps({"keys": list(self.told.values())}))
        part.rename(self.file)

    def settings(self, **more: str) -> dict[str, str]:
        """Of a server that takes its tokens; `more` by what stands behind ``metastore.authentication.jwt.``."""
        told = {"jwks.url": str(self.file), "audience": "metastore", "issuer": "https://id"} | more
        return {"metastore.authentication": "jwt"} | {f"metastore.authentication.jwt.{k}": v for k, v in told.items()}

    def token(self, name: str = "rsa", kid: str | None = None, **claims: Any) -> str:
        key, algorithm = self.keys[name]
        told = {"sub": "ann", "aud": "metastore", "iss": "https://id", "exp": time.time() + 600} | claims
        given = {claim: value for claim, value in told.items() if value is not None}
        return jwt.encode(given, key, algorithm, headers={"kid": kid or name})
