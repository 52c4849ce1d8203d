//! What BPF_PROG_TEST_RUN takes as a packet.

/// The kernel's test interface itself refuses what is too short for the header that the EtherType names.
pub fn is_runnable(frame: &[u8]) -> bool {
    let shortest = match frame.get(12..14) {
        Some([0x08, 0x00]) => 14 + 20,
        Some([0x86, 0xdd]) => 14 + 40,
        _ => 14,
    };
    frame.len() >= shortest
}
