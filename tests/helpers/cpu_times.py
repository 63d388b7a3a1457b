"""A plugin of pytest: the CPU time of each test, in a file, and an error where a fast test uses too much."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=Path, help="write the CPU seconds of each test to this JSON file")
    parser.addoption("--max-cpu", type=float, help="fail where a test that is not slow uses more CPU seconds")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the reports of all processes of xdist reach the first one
        config.pluginmanager.register(CpuTimes(config))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all child processes that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[STARTED] = cpu_seconds()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> None:
    if call.when == "teardown":
        item.user_properties.append(("cpu_seconds", round(cpu_seconds() - item.stash[STARTED], 3)))


STARTED = pytest.StashKey[float]()


class CpuTimes:
    """Set-up, call and teardown of every test, as the process that ran it measured them."""

    def __init__(self, config: pytest.Config):
        self.file, self.limit = config.getoption("--cpu-times"), config.getoption("--max-cpu")
        self.times: list[tuple[float, str]] = []
        self.too_long: list[tuple[float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            time = dict(report.user_properties)["cpu_seconds"], report.nodeid
            self.times.append(time)
            if self.limit is not None and time[0] > self.limit and "slow" not in report.keywords:
                self.too_long.append(time)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.file:
            rows = [{"cpu_seconds": seconds, "test": test} for seconds, test in sorted(self.times, reverse=True)]
            self.file.write_text(json.dumps(rows, indent=0) + "\n")
        if self.too_long and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.too_long:
            terminalreporter.section(f"not slow, and over {self.limit:g} CPU seconds", red=True)
            for seconds, test in sorted(self.too_long, reverse=True):
                terminalreporter.line(f"{seconds:7.2f}  {test}")
