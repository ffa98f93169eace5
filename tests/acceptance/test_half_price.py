"""A whole batch judged in the half-price lane: collected once, paid once, whatever dies in between."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

import simulator
from service.bootstrap import Parts
from service.settings import Settings

ROOT = Path(__file__).parents[2]


def start(folder: Path, url: str, *words: str) -> subprocess.Popen[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "test-key",
        "ASSAY_JUDGING": "batch",
        "ASSAY_LANE_AGE_SECONDS": "1",
        "ASSAY_LANE_POLL_SECONDS": "0.5",
        "ASSAY_REJUDGE_SHARE": "0",
        "ASSAY_LEASE_SECONDS": "3",
        "ASSAY_HEARTBEAT_SECONDS": "0.5",
        "ASSAY_SWEEP_SECONDS": "0.3",
    }
    example = str(ROOT / "examples" / "csv-summary")
    command = [
        sys.executable,
        "-m",
        "cli",
        "run",
        example,
        "--model",
        "simulated",
        "--data",
        str(folder / "data"),
        "--json",
    ]
    with (folder / "run.log").open("ab") as log:
        return subprocess.Popen([*command, *words], env=environment, stdout=subprocess.PIPE, stderr=log, text=True)


def wait_for_batch(model: simulator.Simulator, folder: Path) -> None:
    deadline = time.monotonic() + 90
    while not model.stats()["batches"].get("paid_requests"):
        assert time.monotonic() < deadline, (folder / "run.log").read_text()[-2000:]
        time.sleep(0.1)


def test_killed_between_sending_and_collecting_every_judgement_is_collected_once(
    tmp_path: Path, bubblewrap: str
) -> None:
    tmp_path.chmod(0o755)
    with simulator.start(batch_seconds=4.0) as model:
        process = start(tmp_path, model.url)
        wait_for_batch(model, tmp_path)
        for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            one.kill()
        process.communicate(timeout=20)

        output, _ = start(tmp_path, model.url, "--resume").communicate(timeout=200)

        said = json.loads(output.splitlines()[-1])
        paid = model.stats()["batches"]["paid_requests"]
    assert said["outcomes"] == {"scored": 12}
    assert paid == 12
    parts = Parts(Settings(data=tmp_path / "data", database_url=None))
    lanes = {run.facts["simulated"] for run in parts.desk.runs(said["batch_id"], "default") if run.facts}
    assert lanes == {True}
    parts.close()
