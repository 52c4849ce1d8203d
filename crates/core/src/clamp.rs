//! CLAMP: the receiver sets its window by the price of the access point's queue.
//!
//! ```text
//! p(q)  = max(0, (b q - a) / mu_c)                  price, a number                   at the access point
//! dw/dt = phi tau - p(q) mu                         [bytes/s]                         at the receiver, per segment
//! window offered = w
//! ```
//!
//! q: the queue \[bytes\]; mu_c: what the hop carries [bytes/s]; mu: what this flow receives, over its last arrivals
//! [bytes/s]; phi: its weight; a, tau [bytes/s], b [1/s]: constants. At rest `mu_i = phi_i tau / p`: shares in proportion to
//! the weights, whatever the round trips; and since the rates add up to mu_c, `q = (a + tau x sum of phi) / b`.
//!
//! Source: Andrew, Hanly, Mukhtar, "CLAMP: Active queue management at wireless access points", European Wireless 2005
//! (reference 12 of SAP-LAW), and their technical report 2004-02-01. Their text was not at hand: what the abstracts say
//! (the receiver alone acts, through its advertised window; it needs the aggregate queue and no propagation delay; shares
//! are weighted) holds, the law is theirs as we know it.
//!
//! Ours: all values of the constants; mu over the last 32 arrivals; a start at 256 KiB, since tau opens a window slowly; a
//! step counts at most 0.1 s, so that a pause does not open the window; a floor of two segments. The price reaches the
//! receiver as the host lets it: at once, or with the access point's own packets.

use crate::units::{BitRate, Span, Time};

/// Constants; the defaults are ours. At rest they hold a queue of 5 kB and 5 kB for each flow of weight 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClampParams {
    /// a: rate below which a queue costs nothing, bytes/s.
    pub offset: f64,
    /// b: how fast a queue makes itself felt, 1/s. Well below 1 / RTT, or windows swing.
    pub gain: f64,
    /// tau: how fast a window opens, bytes/s.
    pub opening: f64,
    /// phi: this flow's weight.
    pub weight: f64,
    /// Window at first, bytes.
    pub start: u64,
    /// Least window, bytes: two segments.
    pub floor: u64,
    /// Largest window, bytes: the receiver's buffer.
    pub ceiling: u64,
}

impl Default for ClampParams {
    fn default() -> Self {
        Self {
            offset: 20_000.0,
            gain: 4.0,
            opening: 20_000.0,
            weight: 1.0,
            start: 256 << 10,
            floor: 2 * 1460,
            ceiling: 6 << 20,
        }
    }
}

impl ClampParams {
    /// The price of `queue_bytes` on a hop that carries `capacity`.
    #[must_use]
    pub fn price(&self, queue_bytes: u64, capacity: BitRate) -> f64 {
        let bytes_per_second = capacity.as_bps() as f64 / 8.0;
        if bytes_per_second == 0.0 {
            return 0.0;
        }
        ((self.gain * queue_bytes as f64 - self.offset) / bytes_per_second).max(0.0)
    }
}

/// Arrivals over which a rate is measured.
const ARRIVALS: usize = 32;
/// Longest time that one segment moves the window for.
const LONGEST_STEP: Span = Span::from_millis(100);

/// One flow's window.
#[derive(Clone, Debug)]
pub struct Clamp {
    params: ClampParams,
    window: f64,
    /// The last arrivals, and the bytes that had come before each.
    arrivals: [(Time, u64); ARRIVALS],
    count: usize,
    bytes: u64,
}

impl Clamp {
    /// Before the first segment.
    #[must_use]
    pub fn new(params: ClampParams) -> Self {
        let window = params.start.clamp(params.floor, params.ceiling.max(params.floor)) as f64;
        Self { params, window, arrivals: [(Time::ZERO, 0); ARRIVALS], count: 0, bytes: 0 }
    }

    /// `bytes` of payload arrived while the queue had `price`; the window that the receiver may offer, bytes.
    pub fn on_segment(&mut self, now: Time, bytes: u32, price: f64) -> u64 {
        if self.count > 0 {
            let (last, _) = self.arrivals[(self.count - 1) % ARRIVALS];
            let seconds = now.since(last).min(LONGEST_STEP).as_secs_f64();
            let speed = self.params.weight * self.params.opening - price * self.rate(now);
            let most = self.params.ceiling.max(self.params.floor) as f64;
            self.window = (self.window + speed * seconds).clamp(self.params.floor as f64, most);
        }
        self.arrivals[self.count % ARRIVALS] = (now, self.bytes);
        self.count += 1;
        self.bytes += u64::from(bytes);
        self.window()
    }

    /// The window, bytes.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window as u64
    }

    /// Bytes/s over the last arrivals.
    fn rate(&self, now: Time) -> f64 {
        let (since, before) = self.arrivals[self.count.saturating_sub(ARRIVALS) % ARRIVALS];
        let seconds = now.since(since).as_secs_f64();
        if seconds == 0.0 { 0.0 } else { (self.bytes - before) as f64 / seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: BitRate = BitRate::mbps(20);

    /// By hand: 4 x 10000 - 20000 = 20000 bytes/s, over 2.5 million.
    #[test]
    fn the_price_is_that_of_the_queue_beyond_its_free_part() {
        let params = ClampParams::default();
        assert!((params.price(10_000, CAPACITY) - 0.008).abs() < 1e-12);
        assert_eq!(params.price(5_000, CAPACITY), 0.0);
        assert_eq!(params.price(0, CAPACITY), 0.0);
        assert_eq!(params.price(1, BitRate::ZERO), 0.0);
    }

    /// 1000 B every 10 ms are 100 kB/s; at price 0.5 the window moves by 20000 - 50000 = -30 kB/s.
    #[test]
    fn the_window_moves_as_the_law_says() {
        let mut clamp = Clamp::new(ClampParams::default());
        for n in 0..100 {
            clamp.on_segment(Time::from_nanos(n * 10_000_000), 1000, 0.0);
        }
        let before = clamp.window;
        assert!((before - 262_144.0 - 0.99 * 20_000.0).abs() < 1e-6, "{before}");
        for n in 100..200 {
            clamp.on_segment(Time::from_nanos(n * 10_000_000), 1000, 0.5);
        }
        assert!((clamp.window - before + 30_000.0).abs() < 1e-6, "{}", clamp.window);
    }

    /// Flows whose windows decide what queues: w_i = mu_i (RTT_i + q / mu_c). At rest q = (20 kB/s + n 20 kB/s) / 4, the
    /// shares are equal whatever the round trips, and twice the weight is twice the rate.
    #[test]
    fn at_rest_queue_and_shares_are_those_of_the_equations() {
        for (weights, round_trips) in
            [(vec![1.0], vec![0.08]), (vec![1.0, 1.0], vec![0.03, 0.12]), (vec![1.0, 2.0], vec![0.08, 0.08])]
        {
            let capacity = 2_500_000.0;
            let mut flows: Vec<Clamp> =
                weights.iter().map(|&weight| Clamp::new(ClampParams { weight, ..Default::default() })).collect();
            let mut rates = vec![capacity / flows.len() as f64; flows.len()];
            let mut queue = 0.0_f64;
            // Segments of each flow every millisecond, as many bytes as its rate gives.
            for step in 1..60_000_u64 {
                let delay = queue / capacity;
                let wanted: Vec<f64> =
                    flows.iter().zip(&round_trips).map(|(flow, rtt)| flow.window / (rtt + delay)).collect();
                let sum: f64 = wanted.iter().sum();
                queue = (queue + (sum - capacity) * 0.001).max(0.0);
                let price = ClampParams::default().price(queue as u64, CAPACITY);
                for (n, flow) in flows.iter_mut().enumerate() {
                    rates[n] = wanted[n] * (capacity / sum).min(1.0);
                    flow.on_segment(Time::from_nanos(step * 1_000_000), (rates[n] / 1000.0) as u32, price);
                }
            }
            let weight: f64 = weights.iter().sum();
            let expected = (20_000.0 + weight * 20_000.0) / 4.0;
            assert!((queue / expected - 1.0).abs() < 0.02, "{weights:?}: queue {queue}, not {expected}");
            for (rate, own) in rates.iter().zip(&weights) {
                let share = capacity * own / weight;
                assert!((rate / share - 1.0).abs() < 0.02, "{weights:?}: rate {rate}, not {share}");
            }
        }
    }

    #[test]
    fn the_window_keeps_to_its_bounds() {
        let mut clamp = Clamp::new(ClampParams::default());
        for n in 0..2000 {
            clamp.on_segment(Time::from_nanos(n * 10_000_000), 1460, 10.0);
        }
        assert_eq!(clamp.window(), 2920);
        let mut clamp = Clamp::new(ClampParams { ceiling: 300_000, ..Default::default() });
        for n in 0..2000 {
            clamp.on_segment(Time::from_nanos(n * 10_000_000), 1460, 0.0);
        }
        assert_eq!(clamp.window(), 300_000);
    }

    #[test]
    fn a_pause_does_not_open_the_window() {
        let mut clamp = Clamp::new(ClampParams::default());
        clamp.on_segment(Time::ZERO, 1460, 0.0);
        clamp.on_segment(Time::from_nanos(60_000_000_000), 1460, 0.0);
        assert_eq!(clamp.window(), (256 << 10) + 2000);
    }
}
