//! Every parameter of the control law, with its unit, its reason and its source. Experts may set them (`--set control.law.gain=0.4`,
//! `[law]` of the configuration); `tools/study/ablate.py` shows what each is worth.

/// One parameter, for help texts and tools.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in files.
    pub name: &'static str,
    /// Of its value; 1: a number.
    pub unit: &'static str,
    /// Least and largest value that is taken.
    pub range: (f64, f64),
    /// What the law does without the part that it governs.
    pub without: f64,
    /// What it is for, and where its value comes from.
    pub reason: &'static str,
}

macro_rules! law {
    ($($name:ident = $default:expr, $unit:literal, $range:expr, without $without:expr, $reason:literal;)*) => {
        /// See the module.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Law {
            $(#[doc = $reason] #[doc = concat!(" \\[", $unit, "\\]")] pub $name: f64,)*
        }

        impl Default for Law {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Law {
            /// All of them.
            pub const PARAMETERS: &[Parameter] = &[
                $(Parameter {
                    name: stringify!($name), unit: $unit, range: $range, without: $without, reason: $reason,
                },)*
            ];

            fn field(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// What one is.
            #[must_use]
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

law! {
    gain = 0.5, "1", (0.0, 3.0), without 0.0,
        "Loop gain k: the fair rate moves by k times the error per round trip and interval. An integrator behind a delay is stable below pi/2; 1/2 has a phase margin of 61 degrees (PI2, De Schepper 2016, chooses about the same).";
    queue_target = 0.002, "s", (0.0002, 0.1), without 0.0002,
        "Queueing delay that is kept: without one nobody can tell a bottleneck that is just full from one that could carry more. A game's packets may wait 10 ms, and the worst of a hundred waits about four times the mean.";
    queue_packets = 4.0, "packets of 1,500 bytes", (0.0, 64.0), without 0.0,
        "A slow bottleneck keeps as many packets: one in service, one that a delayed ACK waits for, one that the ACK's own contention costs, and one that waits.";
    queue_turns = 2.0, "turns", (0.0, 8.0), without 0.0,
        "Where the medium sends several packets in a frame, as many of its turns are kept as a queue: the one in which a packet comes, and its own (bulk service, Bailey 1954). A shorter queue makes frames shorter, and with them the medium slower.";
    standing_weight = 0.5, "1", (0.0, 1.0), without 0.0,
        "The queueing delay of an interval is so much the least of it, as CoDel takes it (RFC 8289: what waits all the time), and for the rest its mean: contention for a radio makes some packets wait for no queue.";
    startup_gain = 1.1, "1", (0.5, 3.0), without 1.0,
        "The first fair rate, in parts of what the first trains came through at: a minimum round trip lacks what contention and delayed ACKs add.";
    probe = 0.25, "1 per round trip", (0.0, 1.0), without 0.0,
        "Most that the fair rate grows by while held flows find no queue. It begins at the target over the round trip and doubles, as slow start does.";
    quiet = 0.5, "targets", (0.0, 1.0), without 0.0,
        "A queue below this part of its target says that there is room.";
    headroom = 0.1, "1", (0.0, 10.0), without 10.0,
        "What is delivered varies by about so much: windows that still grow may advertise so much more than the capacity.";
    pace_gain = 1.1, "1", (1.0, 4.0), without 4.0,
        "How much faster than its fair rate a flow's advertised right edge may advance, so that it can make up for a pause (BBR's pacing gain in steady state is 1; 1.25 while it probes).";
    collapse = 4.0, "targets", (1.0, 100.0), without 100.0,
        "A queue of so many targets behind which nothing but held flows grows means a slower bottleneck: the fair rate falls to what is delivered at once.";
    standing_threshold = 0.15, "targets", (0.0, 1.0), without 0.0,
        "Where even the packet that waited least waited longer, the queue was never empty.";
    drain_after = 5.0, "s", (0.5, 1000.0), without 1000.0,
        "A queue that nobody has seen empty for so long is drained once, or it would be taken for the path, or the path for it: half of what a round trip is remembered for (BBR drains every 10 s).";
    release_after = 2.0, "s", (0.1, 1000.0), without 1000.0,
        "Nobody asked for more for so long: nothing is held.";
    growth_time = 0.005, "s", (0.0005, 1.0), without 1.0,
        "Queue that the growth of a window within one round trip may build where no window updates pace it.";
    growth_part = 1.0 / 12.0, "round trips", (0.0, 1.0), without 0.0,
        "The same as a part of a long round trip: what queues is gone before the next growth comes.";
}

impl Law {
    /// Sets one by its name.
    ///
    /// # Errors
    ///
    /// What is wrong with the name or the value, for a person.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let known = Self::PARAMETERS.iter().find(|parameter| parameter.name == name);
        let Some((parameter, field)) = known.zip(self.field(name)) else {
            let names: Vec<_> = Self::PARAMETERS.iter().map(|parameter| parameter.name).collect();
            return Err(format!("the law has no parameter `{name}`; it has {}", names.join(", ")));
        };
        let (least, most) = parameter.range;
        if !(least..=most).contains(&value) {
            let unit = if parameter.unit == "1" { String::new() } else { format!(" ({})", parameter.unit) };
            return Err(format!("{name} is {value}; it must be from {least} to {most}{unit}"));
        }
        *field = value;
        Ok(())
    }
}
