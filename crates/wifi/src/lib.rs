//! What the air does: 802.11 DCF, ARQ, air time, propagation.
