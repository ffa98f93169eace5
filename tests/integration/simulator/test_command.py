"""`python -m simulator` as a process of its own."""

import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import anthropic
import pytest
from support.fleet import write_skill

from cli.simulate import refuse_without_simulator, simulated
from service.bootstrap import Parts
from service.errors import BadInput
from service.settings import Settings, load_settings
from service.storage.schema import migrate
from service.submitting import Submission


@pytest.fixture(autouse=True)
def no_gateway_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("words", [["-m", "simulator"], ["-c", "from cli.main import main; main()", "simulator"]])
def test_the_command_prints_its_url_and_stops_when_told(words: list[str]) -> None:
    argv = [sys.executable, *words, "--port", "0", "--latency", "0,0.1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/stats") as answer:
            stats = json.load(answer)
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)

    assert stats["requests"] == 0
    assert code == 0


def test_a_broken_script_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    script = tmp_path / "simulation.json"
    script.write_text('{"agnet": []}')

    done = subprocess.run(
        [sys.executable, "-m", "simulator", "--script", str(script)], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 1
    assert "unknown key 'agnet'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_model_simulated_brings_its_simulator_and_the_suites_script(tmp_path: Path) -> None:
    suite = tmp_path / "evals.json"
    (tmp_path / "simulation.json").write_text('{"plain": [{"text": "by script"}]}')
    settings = load_settings()

    with simulated(settings, ["simulated", None], suite) as changed:
        key = changed.anthropic_api_key
        assert key is not None
        with anthropic.Anthropic(base_url=changed.anthropic_base_url, api_key=key.get_secret_value()) as client:
            answer = client.messages.create(
                model="simulated", max_tokens=100, messages=[{"role": "user", "content": "hello"}]
            )

    assert answer.content[0].to_dict()["text"] == "by script"


@pytest.mark.parametrize("name", ["ASSAY_EXECUTOR_MODEL", "ASSAY_JUDGE_MODEL", "ASSAY_JUDGE_MODELS"])
def test_a_worker_refuses_a_simulated_model_that_nothing_answers(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, '["a", "simulated-judge"]' if name.endswith("S") else "simulated")

    with pytest.raises(BadInput, match="assay simulator"):
        refuse_without_simulator(load_settings())

    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    refuse_without_simulator(load_settings())


def submit(data: Path, skill: Path, judge: str) -> None:
    said = {"command": "true", "runs_per_eval": 1, "baseline_comparison": False, "judge_model": judge}
    with closing(Parts(Settings(data=data, database_url=None, broker_url=None, sandbox="none"))) as parts:
        migrate(parts.store.engine)
        parts.desk.submit(Submission(skill, settings=said))


@pytest.mark.parametrize("who", ["suite", "ASSAY_JUDGE_MODEL", "option", "batch"])
def test_a_run_brings_the_simulator_whoever_named_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    skill = write_skill(tmp_path / "skill", 1)
    suite = skill / "evals" / "evals.json"
    case = {"id": 1, "prompt": "do it", "expectations": ["It is done"]}
    wanted: dict[str, Any] = {"skill_name": "tiny", "evals": [case]}
    if who == "suite":
        wanted["eval_config"] = {"judge_model": "simulated-judge"}
    if who.startswith("ASSAY"):
        monkeypatch.setenv(who, "simulated-judge")
    suite.write_text(json.dumps(wanted))
    words = ["--judge-model", "simulated-judge"] if who == "option" else []
    words += ["--sandbox", "none", "--data", str(tmp_path / "data"), "--json"]
    if who == "batch":
        submit(tmp_path / "data", skill, "simulated-judge")
        words.append("--resume")

    argv = [sys.executable, "-m", "cli", "run", str(skill), "--runs", "1", "--no-baseline", "--command", "true", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)

    assert json.loads(done.stdout)["outcomes"] == {"scored": 1}, done.stderr[-2000:]


def test_another_model_changes_nothing_and_a_named_gateway_is_kept() -> None:
    settings = load_settings()
    gateway = settings.model_copy(update={"anthropic_base_url": "http://127.0.0.1:1"})

    with simulated(settings, ["claude-haiku-4-5"]) as same, simulated(gateway, ["simulated"]) as kept:
        assert same is settings
        assert kept.anthropic_base_url == "http://127.0.0.1:1"


def test_a_broken_script_of_a_suite_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "simulation.json").write_text('{"agnet": []}')

    with pytest.raises(BadInput, match="agnet"), simulated(load_settings(), ["simulated"], tmp_path / "evals.json"):
        pass
