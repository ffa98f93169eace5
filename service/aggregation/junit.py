"""JUnit XML: gates and cases as test cases, for CI systems that show those."""

import re
from typing import IO
from xml.etree import ElementTree as Xml

from service.aggregation.benchmark import Aggregates
from service.aggregation.figures import signed
from service.aggregation.gates import GateReport, GateState
from service.aggregation.statistics import CaseEffect

CLEAR_LOSS = 1 / 3  # a case that loses this much of its score fails, interval or not
# Characters XML 1.0 cannot carry, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(found: Aggregates, gates: GateReport, out: IO[bytes]) -> None:
    """Write one suite for the gates and one for the cases."""
    root = Xml.Element("testsuites", name=_clean(f"assay {found.plan.skill_name}"))
    suite = Xml.SubElement(root, "testsuite", name="gates")
    for gate in gates.results:
        case = Xml.SubElement(suite, "testcase", classname="assay.gates", name=_clean(gate.name))
        if gate.state is not GateState.PASSED:
            tag = "failure" if gate.state is GateState.FAILED else "skipped"
            Xml.SubElement(case, tag, message=_clean(gate.sentence))
    cases = Xml.SubElement(root, "testsuite", name="cases")
    for effect in found.statistics.effects:
        _add_case(cases, effect)
    for each in (suite, cases):
        _count(each)
    out.write(Xml.tostring(root, encoding="utf-8", xml_declaration=True))


def _add_case(suite: Xml.Element, effect: CaseEffect) -> None:
    case = Xml.SubElement(suite, "testcase", classname="assay.cases", name=_clean(effect.case.facts.label))
    sentence = _sentence(effect)
    if effect.delta is None:
        Xml.SubElement(case, "skipped", message=_clean(sentence))
    elif (effect.high is not None and effect.high < 0) or effect.delta <= -CLEAR_LOSS:
        Xml.SubElement(case, "failure", message=_clean(f"worse with the treatment: {sentence}"))
    Xml.SubElement(case, "system-out").text = _clean(sentence)


def _sentence(effect: CaseEffect) -> str:
    arms = ["no run that counts" if m is None else f"{m.mean or 0.0:.2f}" for m in (effect.treatment, effect.control)]
    delta = "" if effect.delta is None else f", difference {signed(effect.delta, 2)}"
    return f"treatment {arms[0]}, control {arms[1]}{delta}"


def _count(suite: Xml.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for tag, name in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("errors", "0")


def _clean(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
