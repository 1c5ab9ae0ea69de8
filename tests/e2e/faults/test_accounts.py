"""Tests of `main` that belong to the faults: another account, and what a deleted pool
leaves on purpose."""

from main.test_account import (  # noqa: F401
    configurations,
    test_another_account_buys_nothing_again_and_the_first_one_goes_on,
)
from main.test_orphans import (  # noqa: F401
    impatient,
    test_what_a_deleted_pool_leaves_on_purpose_is_not_swept,
    test_what_a_pool_left_behind_is_ended_and_everything_else_stays,
)
