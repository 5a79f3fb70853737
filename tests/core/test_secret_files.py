"""The files that never go to the phone."""

import pytest

from hermes.core.secret_files import is_secret


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".ENV", "api/.env.local", "prod.env", "cert.pem", "a/b/Server.KEY", "id_rsa", "keys/id_ed25519.pub",
        ".git/config", "sub/.git/HEAD", ".git", ".ssh/known_hosts", ".npmrc", ".netrc", ".aws/credentials", "a.p12",
        ".aws/credentials.json", "gcloud/credentials.json", "credentials", ".credentials.json", "auth.json", ".envrc",
        ".pgpass", ".pg_service.conf", ".htpasswd", ".dockercfg", ".docker/config.json", ".kube/config", "me.kdbx",
        "app/release.keystore", "a.jks", ".env~", ".env-production", ".env.bak", ".npmrc~", "server.pem.bak",
        "server.key.old", ".server.pem.swp", ".git-credentials~", "secrets.yaml", "config/secret.json",
        "terraform.tfstate", "terraform.tfstate.backup", "service-account.json", ".vault-token",
    ],
)  # fmt: skip
def test_what_names_secrets_is_one(path: str) -> None:
    """By its name, or a folder above it."""
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        "env.py",
        "README.md",
        "src/idle.py",
        "credentials.md",
        "secrets.py",
        "notes.bak",
        "src/auth.ts",
        "keys.md",
        ".gitignore",
        "git/config",
        "",
        "/",
    ],
)
def test_other_files_are_none(path: str) -> None:
    """However similar."""
    assert not is_secret(path)
