"""The benchmark of the planner's forecasts: its last line and exit status, and the plan by measured costs."""

from dataclasses import replace

import pytest

from benchmarks import split_forecast
from trainer.splitting.plan.costs import compute_analytic_costs

HELD = "worst forecast of seconds: -20.0% (2 stages, process 1); the bar of 20% was held"
MISSED = "worst forecast of seconds: +25.0% (2 copies, process 0); the bar of 20% was missed"


@pytest.mark.parametrize(("copies", "line", "status"), [(1.0, HELD, 0), (1.25, MISSED, 1)])
def test_the_last_line_names_the_worst_row_and_the_status_says_if_the_bar_was_held(
    monkeypatch, capsys, copies, line, status
):
    def run(kind, number, workers):
        name = split_forecast.TIME[number].name
        found = {"forecast": 4.0, "measured": 3.0, "ratio": 1.0}
        results = [dict(found) for _ in range(workers)]
        if name == "2 copies":
            results[0]["ratio"] = copies
        if name == "2 stages":
            results[1]["ratio"] = 0.8
        return results

    monkeypatch.setattr(split_forecast, "run_case", run)
    assert split_forecast.main(["time"]) == status
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == line
    assert printed[2] == "| one process | 0 | 4.00 | 3.00 | +0.0% |"
    assert sum(row.startswith("| ") for row in printed) == 1 + 9


def test_plans_are_made_by_the_bandwidth_and_the_costs_that_all_workers_measure(monkeypatch):
    request = next(case for case in split_forecast.TIME if case.name == "2 copies").request
    calls = []

    class OneProcess:
        device, collective = "device", type("Workers", (), {"size": 2})

        def on_rank_0(self, work):
            return work()

    def bandwidths(given, runtime):
        calls.append((runtime.device, runtime.collective.size))
        return replace(given, bandwidth=5e8)

    def costs(given, device, workers):
        calls.append((device, workers.size))
        assert given.bandwidth == 5e8
        return compute_analytic_costs(given)

    monkeypatch.setattr(split_forecast, "add_bandwidths", bandwidths)
    monkeypatch.setattr(split_forecast, "measure_costs", costs)
    plan = split_forecast.make_profiled_plan(request, OneProcess())
    assert calls == [("device", 2)] * 2
    (stage,) = plan.stages
    assert stage.all_reduce == pytest.approx(stage.memory.weights / 5e8)
