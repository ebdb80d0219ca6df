"""Test sets of a file of arrays, by their names and the ends of the names of arrays.

Arrays of the first test set end in `_test`, those of a further one in `_test_NAME`:

    x_test, Y_test, attention_1_test, ...                         test
    x_test_shifted, Y_test_shifted, attention_1_test_shifted      shifted
"""

import re

from statmech_attn.tasks.own_data.array_files import ArrayFile


TEST = "_test"
FIRST = "test"  # name of the set whose arrays end in `_test`
_OF_SET = re.compile(rf"(?:Y|x|xi|real|lengths|attention_\d+){TEST}_(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # as legends and headings show it


def sets_of_tests(file: ArrayFile) -> dict[str, str]:
    """Ends of the names of the arrays of every test set: the first one, then by name.

    Two sets that differ in capitals alone are refused, and one without labels.
    """
    stored = [(name, m[1]) for name in file.stored if (m := _OF_SET.fullmatch(name))]
    arrays: dict[str, str] = {}  # of every set, the one that shows first
    for array, name in sorted(stored):
        arrays.setdefault(name, array)
    named = {FIRST.casefold(): FIRST}
    for name, array in sorted(arrays.items()):
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{array!r} must end in {TEST}_NAME, where the NAME of a test set is "
                "letters from A to Z, digits, - and _, and begins with a letter or a "
                f"digit; got {name!r}."
            )
        other = named.setdefault(name.casefold(), name)
        if name == FIRST:
            raise ValueError(
                f"{array} is of a test set called {FIRST}, which is the name of the "
                f"one whose arrays end in {TEST}; give it another name."
            )
        if other != name:
            raise ValueError(
                f"the names of the test sets {other} and {name} differ in capital "
                f"letters alone; rename the arrays of one of them, such as {array}."
            )
        if f"Y{TEST}_{name}" not in file:
            raise ValueError(
                f"there is {array} and no Y{TEST}_{name}; write the labels of the test "
                f"set {name}, or rename {array} if it is of none."
            )
    return {FIRST: TEST} | {name: f"{TEST}_{name}" for name in sorted(arrays)}
