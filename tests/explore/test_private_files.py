"""Files that only the user of this process can read or write."""

import os
import stat

import pytest

from statmech_attn.explore import private_files


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the user, and a process that has not read it yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    private_files.secret.cache_clear()
    yield tmp_path / "statmech_attn"
    private_files.secret.cache_clear()


def test_the_secret_is_kept_for_the_user_alone(cache):
    secret = private_files.secret()
    private_files.secret.cache_clear()
    assert private_files.secret() == secret and len(secret) == private_files.SECRET
    assert stat.S_IMODE((cache / "secret").stat().st_mode) == 0o600


def test_a_secret_that_others_can_read_or_that_was_cut_is_not_used(cache):
    secret = private_files.secret()
    (cache / "secret").chmod(0o644)
    private_files.secret.cache_clear()
    assert private_files.secret() != secret
    (cache / "secret").chmod(0o600)
    (cache / "secret").write_bytes(b"")
    private_files.secret.cache_clear()
    assert len(private_files.secret()) == private_files.SECRET


def test_without_a_cache_a_process_has_its_own(cache, monkeypatch):
    cache.write_text("a file where the folder would be")
    assert len(private_files.secret()) == private_files.SECRET


def test_the_redirect_is_read_by_its_user_alone():
    page = private_files.redirect("http://127.0.0.1:1/token/")
    assert "token" not in os.fspath(page) and "url=http://127" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
