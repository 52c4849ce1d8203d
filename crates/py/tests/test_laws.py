"""Laws of congestion control in Python: held to the one in Rust that they restate."""

import pytest


class NewReno:
    """RFC 5681 equations 2 to 4, RFC 3465; recovery is the sender's (RFC 6582)."""

    def __init__(self, flow):
        self.flow = flow
        self.calls = {"ack": 0, "loss": 0, "timeout": 0}

    def on_ack(self, window, ack):
        self.calls["ack"] += 1
        assert ack.acked > 0 and ack.now_s > 0 and (ack.rtt_s is None or ack.rtt_s > 0)
        if ack.cwnd_limited:
            window.cwnd += min(ack.counted, 2.0) if window.cwnd < window.ssthresh else ack.counted / window.cwnd

    def on_loss(self, window, flight, marked):
        self.calls["loss"] += 1
        window.cwnd = window.ssthresh = max(flight / 2, 2.0)

    def on_timeout(self, window, flight):
        self.calls["timeout"] += 1
        window.ssthresh = max(flight / 2, 2.0)


def test_newreno_in_python_is_newreno_in_rust_bit_by_bit(home):
    home = home.set({"wifi.loss": {"kind": "fixed", "rate": 0.3}, "wifi.attempts": 3, "wifi.queue.limit": 20, "duration": "30s", "flow.ftp.cc": "newreno"})
    laws = []
    own = home.run(seed=2, laws={"ftp": lambda flow: laws.append(NewReno(flow)) or laws[-1]})
    assert own == home.run(seed=2)
    assert laws[0].flow == "ftp" and min(laws[0].calls.values()) > 0, "every method was needed"
    # It stands in the place of whatever the scenario says.
    assert home.set({"flow.ftp.cc": "cubic"}).run(seed=2) != own
    assert home.set({"flow.ftp.cc": "cubic"}).run(seed=2, laws={"*": NewReno}) == own


def test_what_a_law_raises_ends_the_run(home):
    class Wrong(NewReno):
        def on_ack(self, window, ack):
            raise ZeroDivisionError("of mine")

    class Nonsense(NewReno):
        def on_ack(self, window, ack):
            window.cwnd = float("nan")

    with pytest.raises(ZeroDivisionError, match="of mine"):
        home.run(laws={"ftp": Wrong})
    with pytest.raises(ValueError, match="no number"):
        home.run(laws={"ftp": Nonsense})
    with pytest.raises(TypeError):
        home.run(laws={"ftp": lambda: None})
    with pytest.raises(AttributeError):
        home.run(laws={"ftp": lambda flow: object()})


def test_only_flows_over_tcp_have_laws(home):
    for name in ("game-down", "fpt"):
        with pytest.raises(ValueError, match=f"there is no flow `{name}` over TCP; those are ftp"):
            home.run(laws={name: NewReno})
