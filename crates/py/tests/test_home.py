"""Homes: where they come from, what can be set, what is refused."""

import pickle
import signal
import subprocess
import sys
import threading
import time

import lasthop
import pytest


def test_packaged_scenarios_are_found_by_name():
    names = lasthop.scenarios()
    assert "papers/sap-law" in names and len(names) > 20
    assert lasthop.load("sap-law").name == lasthop.load("papers/sap-law").name
    with pytest.raises(ValueError) as refused:
        lasthop.load("sap-lwa")
    what = "sap-lwa: is no file, and no packaged scenario is called so; near it: papers/sap-law, papers/sap-law-clamp"
    assert str(refused.value) == f"{what}; lasthop.scenarios() has all {len(names)}"


def test_every_packaged_scenario_loads():
    for name in lasthop.scenarios():
        assert lasthop.load(name).duration_s > 0, name


def test_values_are_written_as_toml(home):
    assert home.set(wifi__queue__limit=7).sets == ["wifi.queue.limit=7"]
    assert home.set({"station.A.distance": "20m"}, wifi__attempts=2).sets == ["station.A.distance=20m", "wifi.attempts=2"]
    assert home.set(control__window={"capacity": "learn"}).sets == ['control.window={ capacity = "learn" }']
    assert home.set(wifi__queue=None).sets == ["wifi.queue=none"]
    assert home.set(seed=2.0).seed == 2
    with pytest.raises(ValueError, match="is no value of a scenario"):
        home.set(seed=object())
    with pytest.raises(TypeError, match="is no mapping; write set"):
        home.set("wifi.queue.limit=7")


def test_a_home_is_never_changed_and_equal_homes_have_one_key(home):
    other = home.set(wifi__queue__limit=7)
    assert home.sets == [] and other != home
    same = home.set(wifi__queue__limit=9).set(wifi__queue__limit=7)
    assert same == other and hash(same) == hash(other) and same.key(5) == other.key(5)
    one = home.set({"wifi.queue.limit": 7, "wifi.attempts": 2})
    assert one == home.set({"wifi.attempts": 2, "wifi.queue.limit": 7})
    assert home.key(1) != home.key(2) and len(home.key(1)) == 64
    for asked in (home.run, home.key):
        for seed in (-1, 2**64):
            with pytest.raises(ValueError, match=f"seed: {seed} stands here; write an integer from 0 to"):
                asked(seed)


@pytest.mark.parametrize("key, value", [("wifi.quue", 3), ("wifi.attempts", "many"), ("station.C.distance", "3m"), ("flow.ftp.cc", "reno2")])
def test_a_refused_key_has_the_programs_words(home, scenario, program, key, value):
    with pytest.raises(ValueError) as refused:
        lasthop.load(scenario).set({key: value}).check()
    _, said = program("sim", scenario, "--set", f"{key}={value}", code=2)
    assert str(refused.value) in said


def test_what_the_simulator_does_not_carry_is_refused_when_it_runs(home):
    home = home.set({"flow.ftp.cc": "reno2"})
    for asked in (home.check, home.run):
        with pytest.raises(ValueError, match="flow.ftp.cc: not yet: "):
            asked()
    with pytest.raises(ValueError, match="flow.ftp.cc: not yet: "):
        lasthop.sweep(home)


def test_a_pickle_takes_the_traces_along(tmp_path):
    from conftest import HOME, TRACE

    (tmp_path / "v.txt").write_text(TRACE)
    path = tmp_path / "film.toml"
    path.write_text(HOME + '[[flow]]\nname = "film"\nfrom = "W"\nto = "A"\nkind = "video"\ntrace = "v.txt"\n')
    home = lasthop.load(path).set(wifi__queue__limit=7)
    state = pickle.dumps(home)
    (tmp_path / "v.txt").unlink()
    path.unlink()
    other = pickle.loads(state)
    assert other == home and other.run(seed=4) == home.run(seed=4)


def test_ctrl_c_ends_a_run():
    code = (
        "import lasthop, time; print('ready', flush=True)\n"
        "try: lasthop.load('sap-law').set(duration='7d').run()\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "interrupted\n"


def test_another_thread_is_ended_by_stop_and_the_lock_is_free(home):
    stop, ended = lasthop.Stop(), []

    def run():
        try:
            home.set(duration="7d").run(stop=stop)
        except KeyboardInterrupt:
            ended.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    turns, until = 0, time.monotonic() + 0.3
    while time.monotonic() < until:
        turns += 1
    # With the lock held this thread would have had no turn until the run ended.
    assert turns > 1000 and thread.is_alive()
    stop.set()
    thread.join(30)
    assert ended == [True]


def test_notebooks_show_tables(home):
    assert "game-down" in home._repr_html_() and "small" in repr(home)
    assert "<table>" in home.run()._repr_html_()
