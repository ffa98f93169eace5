"""The house: our top-level names are ours alone, and the version is one."""

from importlib.metadata import packages_distributions, version

OURS = ("schemas", "service", "workers", "api", "cli", "simulator")


def test_no_other_distribution_owns_our_names() -> None:
    owners = packages_distributions()

    # An editable install lists none of them; a foreign owner would be listed either way.
    assert {name: set(owners.get(name, [])) - {"skill-assay"} for name in OURS} == {name: set() for name in OURS}


def test_the_distribution_has_a_version() -> None:
    assert version("skill-assay")
