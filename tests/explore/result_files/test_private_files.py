"""Files that only the user of this process can read or write."""

import os
import stat

from statmech_attn.explore.result_files import private_files


def test_the_redirect_is_read_by_its_user_alone():
    page = private_files.redirect("http://127.0.0.1:1/token/")
    assert "token" not in os.fspath(page) and "url=http://127" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
