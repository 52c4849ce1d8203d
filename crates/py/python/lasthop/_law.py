"""What a law of congestion control is, for who writes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._lasthop import Ack, Window


class Law(Protocol):
    """What `Home.run(laws=..)` takes for a flow: a law of congestion control. Windows are in segments; what is set holds at once."""

    def on_ack(self, window: Window, ack: Ack) -> object:
        """Something new was acknowledged, outside of fast recovery."""
    def on_loss(self, window: Window, flight: float, marked: bool) -> object:
        """Three duplicate acknowledgments, or a queue has marked (ECN): sets threshold and window; so many segments were under way."""
    def on_timeout(self, window: Window, flight: float) -> object:
        """The retransmission timer expired: sets the threshold; the window becomes one segment."""
