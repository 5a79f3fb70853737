"""The files of a project that never go to the phone, because their names say that they hold secrets. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

FOLDERS: Final = frozenset({".git", ".ssh", ".gnupg", ".aws", ".docker", ".kube"})
FILES: Final = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "id_*",
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", ".credentials.json",
    "auth.json", ".envrc", ".pgpass", ".pg_service.conf", ".htpasswd", ".dockercfg", "*.kdbx", "*.keystore", "*.jks",
)  # fmt: skip


def is_secret(path: str) -> bool:
    """Tell whether a path, with slashes, names such a file, or one in such a folder; capitals count as small ones."""
    parts = [part for part in path.lower().split("/") if part]
    named = parts[-1] if parts else ""
    return not FOLDERS.isdisjoint(parts) or any(fnmatchcase(named, pattern) for pattern in FILES)
