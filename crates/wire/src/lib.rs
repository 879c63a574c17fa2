//! Framing arithmetic, and views of the packets on the wire.
