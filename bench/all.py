"""Every bench, one after the other, then the plots. `make bench`.

    python bench/all.py [NAME ...]

Names are those of the files; without any, all. The peers and the very large batch take most of the time.
"""

import shlex
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
BENCHES = {
    "suite_reading": "suite_reading.py",
    "simulator_load": "simulator_load.py",
    "checks": "checks.py",
    "pipeline_submit": "pipeline.py submit",
    "pipeline_stages": "pipeline.py stages",
    "executor": "executor.py",
    "judge": "judge.py --latency 1.0",
    "judge_spread": "judge.py --latency 0.5,1.5",
    "judge_without_latency": "judge.py --latency 0 --concurrency 32 --rounds 60",
    "limiter": "limiter.py",
    "aggregation": "aggregation.py",
    "api_load": "api_load.py",
    "footprint": "footprint.py",
    "peers": "peers",
    "scale": "scale.py",
}


def main() -> None:
    """Say what is next; one that fails does not stop the others."""
    wanted = sys.argv[1:] or list(BENCHES)
    if unknown := set(wanted) - set(BENCHES):
        sys.exit(f"there is no bench {unknown.pop()!r}; known are {', '.join(BENCHES)}")
    failed = []
    for number, name in enumerate(wanted, 1):
        print(f"\n[{number}/{len(wanted)}] {name}: python bench/{BENCHES[name]}", flush=True)
        script, *words = shlex.split(BENCHES[name])
        began = time.monotonic()
        if subprocess.run([sys.executable, str(HERE / script), *words]).returncode:
            failed.append(name)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    subprocess.run([sys.executable, str(HERE / "plots.py")], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
