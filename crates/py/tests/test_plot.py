"""The plots are drawn, and hold what the figures say."""

import lasthop
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def test_plots_of_reports(home):
    reports = {"short": home.set(wifi__queue__limit=5).run(series=True), "long": home.run(series=True)}
    ax = lasthop.plot.delay_cdf(reports, flow="game-down")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["short", "long"]
    share = ax.lines[0].get_ydata()
    assert min(share) == 0.0 and max(share) == 1.0
    assert len(lasthop.plot.timeline(reports["long"]).lines) == 2
    assert lasthop.plot.windows(reports["long"], "ftp").get_title() == "ftp"
    with pytest.raises(ValueError, match="the flows are game-down, ftp"):
        lasthop.plot.windows(reports["long"], "fpt")
    with pytest.raises(ValueError, match="`game-down` has no windows"):
        lasthop.plot.windows(reports["long"], "game-down")
    with pytest.raises(ValueError, match="a series has no `goodput`; it has delay_mean_ms"):
        lasthop.plot.timeline(reports, "goodput")


def test_plots_of_a_sweep(home, tmp_path):
    runs = lasthop.sweep(home, {"wifi.queue.limit": [5, 200]}, seeds=3)
    ax = lasthop.plot.goodput_delay(runs, "flows.ftp.goodput_bps", "flows.game-down.added_delay.p99")
    assert len(ax.containers) == 2 and ax.xaxis_inverted()
    assert lasthop.plot.means(runs, "flows.ftp.goodput_bps").get_xlabel() == "wifi.queue.limit"
    lasthop.plot.fairness(runs).figure.savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 1000
    matplotlib.pyplot.close("all")
