"""How long a suite takes to read, for growing numbers of cases: the time per case should stay the same.

python bench/suite_reading.py
"""

import argparse
import json
import statistics
import time
import tracemalloc

from results import save

from schemas.dialects import read, write
from schemas.dialects.parsing import MAX_BYTES, parse


def suite(cases: int) -> bytes:
    """A skill_evaluator suite of about 1 KB per case, with all that a case can have."""
    return json.dumps({"skill_name": "bench", "evals": [case(number) for number in range(cases)]}).encode()


def case(number: int) -> dict[str, object]:
    return {
        "id": number,
        "name": f"Case {number}",
        "prompt": f"Summarise the quarterly numbers of region {number} and save them as report.md. " * 4,
        "expected_output": "A report with one table and three observations",
        "files": ["evals/files/numbers.csv"],
        "expectations": ["The totals are right", "Every observation has its number"],
        "structural_expectations": [
            {"id": "S1", "type": "file_exists", "description": "Report written", "pattern": "*.md", "critical": True},
            {"id": "S2", "type": "file_contains", "pattern": "*.md", "match_any": ["Total", "Sum"]},
        ],
        "quality_rubric": {
            "dimensions": [
                {
                    "id": "Q1",
                    "name": "clarity",
                    "description": "Someone in a hurry finds the answer at once",
                    "weight": 2.0,
                    "scoring": {"1": "Buried", "3": "There, with effort", "5": "In the first line"},
                }
            ]
        },
    }


def measure(cases: int, repeats: int) -> dict[str, object]:
    data = suite(cases)
    assert len(data) <= MAX_BYTES, "a suite this large would be refused"
    whole = [seconds(lambda: read(data)) for _ in range(repeats)]
    reading = read(data)
    assert reading.ok and reading.document is not None and reading.dialect is not None
    document, dialect = reading.document, reading.dialect
    median = statistics.median(whole)
    return {
        "cases": cases,
        "mb": round(len(data) / 1e6, 2),
        "read_seconds": round(median, 3),
        "of_which_parse_seconds": round(seconds(lambda: parse(data)), 3),
        "write_seconds": round(seconds(lambda: write(document, dialect)), 3),
        "microseconds_per_case": round(median / cases * 1e6, 1),
        "cases_per_second": round(cases / median),
        "peak_mb": peak_mb(data),
    }


def seconds(work: object) -> float:
    assert callable(work)
    """CPU time of one call: other work on the machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mb(data: bytes) -> float:
    tracemalloc.start()
    read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="+", default=[1_000, 2_000, 5_000, 10_000])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    sizes = []
    for cases in options.cases:
        sizes.append(measure(cases, options.repeats))
        print(json.dumps(sizes[-1]), flush=True)
    save("suite_reading", {"sizes": sizes})


if __name__ == "__main__":
    main()
