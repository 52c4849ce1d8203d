//! Host 2, real time: namespaces, TAPs and the air, with real packets.
