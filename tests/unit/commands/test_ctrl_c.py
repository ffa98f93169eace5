"""Ctrl-C at a bad moment."""

import os
import signal

import pytest

from cli.ctrl_c import CtrlC


class Clears:
    """Something that is cleared away while Ctrl-C is pressed: Python prints the exception and drops it."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_is_not_lost_with_its_exception() -> None:
    before = signal.getsignal(signal.SIGINT)

    with CtrlC() as ctrl_c:
        ctrl_c.check()
        thing = Clears()
        del thing
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.check()

    assert signal.getsignal(signal.SIGINT) is before
