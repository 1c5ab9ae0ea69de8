"""docs/devctl.md, executed as it is written."""

from documents import suites

from devctl.program import Devctl


def test_the_page_works_as_it_is_written(devctl: Devctl) -> None:
    folder = devctl.program.parent
    environment = devctl.variables()
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    # The flavor of the page is for EC2. The suite's platform offers pods.
    said = suites.run("devctl", {"FLAVOR": "cpu-small"}, environment)
    print(said)
    assert "training\ndone" in said
