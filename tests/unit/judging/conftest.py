"""One run of each dialect."""

import pytest
from support import judging

from service.judging.material import JudgeMaterial


@pytest.fixture
def statement_run() -> JudgeMaterial:
    return judging.statement_run()


@pytest.fixture
def rubric_run() -> JudgeMaterial:
    return judging.rubric_run()


@pytest.fixture
def criteria_run() -> JudgeMaterial:
    return judging.criteria_run()
