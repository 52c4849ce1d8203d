"""Reports: the program's own, field by field."""

import json
import pickle

import lasthop
import pytest


def without_time(report):
    """How long it took is not the same twice."""
    report["run"].pop("wall_s")
    return report


@pytest.mark.parametrize("name, sets", [("sap-law", {"measure_from": "140s"}), ("chap-web", {"duration": "40s"}), ("snoop", {"duration": "8s"}), ("homes/evening", {"duration": "5s", "measure_from": "1s"})])
def test_a_report_is_the_programs_json_field_by_field(program, tmp_path, name, sets):
    home = lasthop.load(name).set(sets)
    path = tmp_path / "report.json"
    options = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    program("sim", home.file, "--seed", 5, *options, "--json", path)
    expected = json.loads(path.read_text())
    report = home.run(seed=5)
    assert without_time(report.to_dict()) == without_time(expected)
    assert list(report.to_dict()) == list(expected), "in the same order, too"
    assert json.loads(report.to_json())["flows"] == expected["flows"]


def test_figures_have_the_names_of_a_sweep(home):
    report = home.run(seed=3)
    figures = report.figures()
    assert report["flows.ftp.goodput_bps"] == report["ftp.goodput_bps"] == report["ftp.goodput"] == figures["flows.ftp.goodput_bps"] > 1e6
    assert report["seed"] == 3 and report["run.valid"] is True and report["AP.airtime_share"] > 0
    assert report["flows.ftp.start_up.delay"] is None
    with pytest.raises(KeyError, match="near it are .*flows.ftp.goodput_bps"):
        report["flows.ftp.goodputt"]


def test_a_report_comes_back_from_a_pickle(home):
    report = home.run(seed=3, trace=True, series=True)
    other = pickle.loads(pickle.dumps(report))
    assert other == report and other.to_dict() == report.to_dict()
    assert other.trace.to_arrow().equals(report.trace.to_arrow())
    assert other.delays.to_arrow().equals(report.delays.to_arrow())
    assert other != home.run(seed=4)


def test_what_was_not_kept_is_refused(home):
    report = home.run()
    for name in ("trace", "series", "queue_series", "delays"):
        with pytest.raises(ValueError, match="kept no"):
            getattr(report, name)
