"""How many judgements one judge process holds at once, and what a second process adds.

    python bench/judge.py [--concurrency 400] [--rounds 30] [--latency 0.5,1.5] [--processes 2] [--kilobytes 12]

Each judgement is whole: building the request, limiter and budgets, the call on the SDK, reading and scoring the
answer. The simulator answers from a script, so that what is measured is not its thinking. Share of the ideal =
judgements per second / (concurrency / mean latency); start and end are part of it. CPU and memory are those of the
judge alone.
With latency 0 the processes are bound by their CPU: there the rate of two shows what a second core adds.
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from results import save

TEXT = "The names in the file are John Smith and Sarah Johnson; both were checked twice.\n"


def material(kilobytes: int) -> Any:
    """One run with a transcript and an output of that size together; all judgements are of it."""
    from schemas.kinds import Dialect
    from schemas.suite import Case, Dimension, Rubric, Statement
    from service.judging.material import JudgeMaterial, output_file

    statements = tuple(Statement(text=f"Statement number {n} holds") for n in range(5))
    dimensions = tuple(Dimension(name=f"dimension_{n}", scoring={"1": "bad", "5": "good"}) for n in range(3))
    case = Case(id=1, prompt="Extract the names", statements=statements, rubric=Rubric(dimensions=dimensions))
    text = TEXT * max(1, kilobytes * 500 // len(TEXT))
    return JudgeMaterial(case, Dialect.SKILL_EVALUATOR, (output_file("names.txt", text.encode()),), text)


def settings() -> Any:
    """One judge."""
    from service.judging.settings import JudgeSettings

    return JudgeSettings(models=("simulated",), rejudge_share=0.0)


def scripted_answer(kilobytes: int) -> dict[str, Any]:
    """A usable answer to the one run."""
    from service.judging.request import Slot, build_request

    request = build_request(material(kilobytes), settings(), Slot("simulated"))
    truth = {id_: control.phrase == request.true_control for id_, control in request.questions.controls.items()}
    said = dict.fromkeys(request.questions.statements, True) | truth
    return {
        "statements": [{"id": id_, "evidence": TEXT, "passed": passed} for id_, passed in said.items()],
        "dimensions": [{"id": id_, "evidence": TEXT, "score": 4} for id_ in request.questions.dimensions],
        "claims": [],
        "user_notes": {"uncertainties": [], "needs_review": [], "workarounds": []},
        "eval_feedback": {"suggestions": [], "overall": ""},
    }


def cpu_seconds() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(url: str, concurrency: int, count: int, kilobytes: int) -> dict[str, float]:
    """Judgements in this process, from many threads."""
    from service.judging.ask import Asker, ask_with
    from service.judging.judge import judge
    from service.limits.gate import Gate
    from service.limits.hook import LimitsHook
    from service.limits.memory import MemoryLimiter
    from service.limits.memory_budgets import MemoryBudgets
    from service.limits.port import Policy
    from service.models import ClientSettings, ModelClient

    hook = LimitsHook(Gate(MemoryLimiter(Policy())), MemoryBudgets(), lambda _: (), lambda *_: 0.0)
    client = ModelClient(ClientSettings("k", url, concurrency), [hook])
    ask, chosen, numbers = ask_with(client, Asker()), settings(), itertools.count()
    judge(material(kilobytes), chosen, ask)

    def worker() -> None:
        while next(numbers) < count:
            judge(material(kilobytes), chosen, ask)

    threads = [threading.Thread(target=worker) for _ in range(concurrency)]
    print("ready", flush=True)
    sys.stdin.readline()
    started, used = time.perf_counter(), cpu_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, used = time.perf_counter() - started, cpu_seconds() - used
    client.close()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rate": count / seconds, "cpu_ms": used / count * 1000, "rss_mib": most}


def start_simulator(latency: str, kilobytes: int) -> tuple[subprocess.Popen[str], str]:
    """A simulator in a process of its own; it names no limits."""
    script = Path(tempfile.mkdtemp()) / "script.json"
    script.write_text(json.dumps({"judge": [{"answer": scripted_answer(kilobytes)}]}))
    argv = [sys.executable, "-m", "simulator", "--port", "0", "--latency", latency, "--script", str(script)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    return process, url


def together(count: int, url: str, options: argparse.Namespace) -> list[dict[str, float]]:
    """So many processes that start at the same moment."""
    argv = [sys.executable, __file__, "--url", url, "--concurrency", str(options.concurrency)]
    argv += ["--rounds", str(options.rounds), "--kilobytes", str(options.kilobytes)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(argv, **pipes) for _ in range(count)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [json.loads(worker.communicate()[0].splitlines()[-1]) for worker in workers]


def main() -> None:
    """One process, then several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--latency", default="0.5,1.5", help="seconds, or least,most")
    parser.add_argument("--kilobytes", type=int, default=12)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        count = options.concurrency * options.rounds
        print(json.dumps(measure(options.url, options.concurrency, count, options.kilobytes)))
        return
    simulator, url = start_simulator(options.latency, options.kilobytes)
    ends = [float(end) for end in options.latency.split(",")]
    mean = sum(ends) / len(ends)
    print("| judge processes | judgements/s | share of ideal | CPU ms each | RSS MiB |\n|---|---|---|---|---|")
    found: dict[str, dict[str, float]] = {}
    try:
        for count in sorted({1, options.processes}):
            seen = together(count, url, options)
            rate = sum(one["rate"] for one in seen)
            ideal = count * options.concurrency / mean if mean else None
            share = f"{rate / ideal:.2f}" if ideal else "-"
            cpu = sum(one["cpu_ms"] for one in seen) / count
            most = max(one["rss_mib"] for one in seen)
            print(f"| {count} | {rate:.0f} | {share} | {cpu:.2f} | {most:.0f} |", flush=True)
            told = {"judgements_per_second": round(rate, 1), "cpu_ms": round(cpu, 2), "rss_mib": round(most)}
            found[str(count)] = told | ({"share_of_ideal": round(rate / ideal, 3)} if ideal else {})
    finally:
        simulator.terminate()
        simulator.wait()
    asked = {"concurrency": options.concurrency, "latency": options.latency, "kilobytes": options.kilobytes}
    name = "judge_without_latency" if not mean else "judge_spread" if len(ends) > 1 else "judge"
    save(name, {**asked, "rounds": options.rounds, "processes": found})


if __name__ == "__main__":
    main()
