"""What a law of congestion control is, for who writes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._lasthop import Ack, Window


class Law(Protocol):
    """A law of congestion control, as `Home.run(laws=..)` takes one for a flow: any object with these methods.

    Windows are in segments; what is set holds at once. What a method returns is not looked at; what it raises ends the run.
    """

    def on_ack(self, window: Window, ack: Ack) -> object:
        """Something new was acknowledged, outside of fast recovery.

        Args:
            window: to be moved, segments.
            ack: what was acknowledged, segments, and when, s.
        """
    def on_loss(self, window: Window, flight: float, marked: bool) -> object:
        """Three duplicate acknowledgments, or a queue has marked (ECN): sets threshold and window.

        Args:
            window: to be moved, segments.
            flight: what was under way, segments.
            marked: whether it was a mark; nothing is lost then.
        """
    def on_timeout(self, window: Window, flight: float) -> object:
        """The retransmission timer expired: sets the threshold; the window becomes one segment.

        Args:
            window: to be moved, segments.
            flight: what was under way, segments.
        """
