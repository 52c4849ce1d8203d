//! `--trace`: a JSON object per line and change, as `schema/report.md` has it; absent fields are left out.

use std::io::{self, Write};

use lasthop_sim::TraceLine;
use serde::Serialize;

/// The form of a line in the file.
#[derive(Serialize)]
struct Line<'a> {
    t_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwnd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offered_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clamped_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inflight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<f64>,
}

impl<'a> From<&'a TraceLine> for Line<'a> {
    fn from(line: &'a TraceLine) -> Self {
        // JSON knows no infinity, which is what ssthresh is before the first loss: then there is none.
        let finite = |value: Option<f64>| value.filter(|v| v.is_finite());
        Self {
            t_s: line.t_s,
            flow: line.flow.as_deref(),
            queue: line.queue.as_deref(),
            cwnd: finite(line.cwnd),
            ssthresh: finite(line.ssthresh),
            offered_window: line.offered_window,
            clamped_window: line.clamped_window,
            inflight: line.inflight,
            queue_packets: line.queue_packets,
            rate_bps: finite(line.rate_bps),
            bandwidth_bps: finite(line.bandwidth_bps),
            delay_ms: finite(line.delay_ms),
        }
    }
}

/// What writes a line to `out`, which should be buffered.
pub fn writer(out: &mut impl Write) -> impl FnMut(&TraceLine) -> io::Result<()> {
    |line| {
        serde_json::to_writer(&mut *out, &Line::from(line))?;
        out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_fields_and_infinities_are_left_out() {
        let mut text = Vec::new();
        let mut write = writer(&mut text);
        let flow = TraceLine { t_s: 1.5, flow: Some("ftp".into()), cwnd: Some(2.0), ..TraceLine::default() };
        write(&TraceLine { ssthresh: Some(f64::INFINITY), clamped_window: Some(7), ..flow }).unwrap();
        write(&TraceLine { t_s: 2.0, queue: Some("AP".into()), queue_packets: Some(3), ..TraceLine::default() })
            .unwrap();
        drop(write);
        let expected = "{\"t_s\":1.5,\"flow\":\"ftp\",\"cwnd\":2.0,\"clamped_window\":7}\n\
                        {\"t_s\":2.0,\"queue\":\"AP\",\"queue_packets\":3}\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
