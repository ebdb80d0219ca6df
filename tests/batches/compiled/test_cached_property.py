"""What threads share is computed once, by one of them."""

import threading
from concurrent.futures import ThreadPoolExecutor

from statmech_attn.batches.compiled.cached_property import once


class Study:
    def __init__(self):
        self.computed = 0
        self.begun, self.go_on = threading.Event(), threading.Event()

    @once
    def program(self):
        self.computed += 1
        self.begun.set()
        assert self.go_on.wait(10)
        return object()


def test_threads_that_ask_while_it_is_computed_wait_for_it():
    study = Study()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(lambda: study.program)
        assert study.begun.wait(10)
        others = [pool.submit(lambda: study.program) for _ in range(3)]
        assert not any(other.done() for other in others)
        study.go_on.set()
        found = {id(one.result()) for one in (first, *others)}
    assert study.computed == 1 and len(found) == 1


def test_every_study_has_its_own():
    one, other = Study(), Study()
    one.go_on.set(), other.go_on.set()
    assert one.program is one.program is not other.program
