"""The task that Inspect AI is given; it is read by Inspect's own interpreter, which knows nothing of Assay."""

import json
import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate


@task
def harbours() -> Task:
    """One generation per sample, graded by a model."""
    asked = json.loads(Path(os.environ["BENCH_WORK"]).read_text())
    samples = [Sample(input=prompt, target=asked["statement"], id=n) for n, prompt in enumerate(asked["prompts"], 1)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=model_graded_qa(model=asked["judge"]))
