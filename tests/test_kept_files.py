"""What a process keeps for others of its user, in a store that others may write."""

import pickle
import stat

import jax
import pytest

from statmech_attn import kept_files


NAME = "jax_compilation_cache_dir"


def forget():
    kept_files.secret.cache_clear()
    kept_files._stored_secret.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of the user, and a process that has not read it yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    forget()
    yield tmp_path / "user/statmech_attn"
    forget()


@pytest.fixture
def store(cache, tmp_path):
    """An empty store of programs, which others may write."""
    before = getattr(jax.config, NAME)
    jax.config.update(NAME, str(tmp_path / "store"))
    yield tmp_path / "store"
    jax.config.update(NAME, before)


def test_the_secret_is_kept_for_the_user_alone(cache):
    secret = kept_files.secret()
    forget()
    assert kept_files.secret() == secret and len(secret) == kept_files.SECRET
    assert stat.S_IMODE((cache / "secret").stat().st_mode) == 0o600


def test_a_secret_that_others_can_read_or_that_was_cut_is_not_used(cache):
    secret = kept_files.secret()
    (cache / "secret").chmod(0o644)
    forget()
    assert kept_files.secret() != secret
    (cache / "secret").chmod(0o600)
    (cache / "secret").write_bytes(b"")
    forget()
    assert len(kept_files.secret()) == kept_files.SECRET


def test_without_a_cache_a_process_has_its_own_and_keeps_nothing(cache, store):
    cache.parent.mkdir()
    cache.write_text("a file where the folder would be")
    assert len(kept_files.secret()) == kept_files.SECRET
    kept_files.write("entries", ["a"], b"content")
    assert not store.exists()


class Code:
    def __reduce__(self):
        return (pytest.fail, ("code of somebody else was run",))


@pytest.mark.parametrize("seal", [kept_files.DIGEST, lambda content: content])
def test_an_entry_of_somebody_else_is_none(store, seal):
    kept_files.write("entries", ["a"], b"content")
    assert kept_files.read("entries", ["a"]) == b"content"
    forged = pickle.dumps(Code())
    (entry,) = (store / "entries").iterdir()
    seal = seal(forged)
    entry.write_bytes((seal.digest() if seal is not forged else seal) + forged)
    with pytest.warns(UserWarning, match="written by somebody else; it is made anew"):
        assert kept_files.read("entries", ["a"]) is None


def test_users_of_one_store_do_not_meet(store, cache):
    kept_files.write("entries", ["a"], b"mine")
    (cache / "secret").unlink()
    forget()
    assert kept_files.read("entries", ["a"]) is None
    kept_files.write("entries", ["a"], b"theirs")
    assert len(list((store / "entries").iterdir())) == 2


def test_names_of_entries_tell_texts_apart():
    assert kept_files.digest(["a", "b"]) != kept_files.digest(["ab"])
