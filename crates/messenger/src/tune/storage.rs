//! What the device's storage takes: reads and writes of doubling sizes, and the line `time = operation + bytes / rate`
//! through them.
//!
//! Writes are made as a fetch makes them: plain writes, then one `fsync`. Where the storage is behind a page cache the
//! writes take what memory takes, and what the storage takes comes at the end; both are said. Synchronous writes would
//! measure something that a fetch does not do, and wear flash: each of 512 B costs it a whole page.

use super::law::{Cost, packet_sizes};
use crate::tuning::quantity::PacketSize;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes that are written: flash wears.
const MOST_BYTES: u64 = 4 << 20;
/// Most calls of one size, and bytes after which a size has enough of them.
const MOST_CALLS: usize = 16;
const ENOUGH_BYTES: usize = 256 << 10;
/// Of the time, how much is for writing; the rest is for reading.
const WRITING: f64 = 0.65;

/// Something that is written and read, and says how long it took.
pub trait Storage {
    /// Appends.
    ///
    /// # Errors
    /// Of the storage; `StorageFull` and `QuotaExceeded` end the writing, not the probe.
    fn write(&mut self, bytes: &[u8]) -> io::Result<Duration>;

    /// Waits until all of it is on the storage, and goes back to its beginning, for it to be read from there.
    ///
    /// # Errors
    /// Of the storage.
    fn settle(&mut self) -> io::Result<Duration>;

    /// Reads on, from the beginning when the end is reached; there is more than `bytes` has.
    ///
    /// # Errors
    /// Of the storage.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<Duration>;
}

/// Calls of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Of each call.
    pub bytes: usize,
    /// How many.
    pub calls: usize,
    /// Median of one, in seconds.
    pub seconds: f64,
}

/// What a storage takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probed {
    /// The smallest first.
    pub writes: Vec<Sample>,
    /// The line through them.
    pub write: Cost,
    /// The smallest first.
    pub reads: Vec<Sample>,
    /// The line through them.
    pub read: Cost,
    /// How long the last bytes took to be on the storage when all had been written, in seconds for each byte written.
    pub settle_s_per_byte: f64,
    /// There was no room for all that would have been written.
    pub full: bool,
}

impl Probed {
    /// Written bytes wait in memory, and the storage takes them later: at least as long as the writes themselves.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.settle_s_per_byte * self.write.rate > 1.0
    }
}

/// A storage that cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Not even the smallest write has room.
    #[error("there is no room for a single packet of {} B", PacketSize::RANGE.start())]
    Full,
    /// It failed.
    #[error("cannot write and read there")]
    Io(#[from] io::Error),
    /// The watcher ended it.
    #[error("stopped")]
    Stopped,
}

/// Measures `storage` for about `limit`, by its own account of the time. `watch` is asked before each call whether to go
/// on.
///
/// # Errors
/// [`ProbeError`].
pub fn probe(
    storage: &mut impl Storage,
    limit: Duration,
    watch: &mut dyn FnMut() -> bool,
) -> Result<Probed, ProbeError> {
    let bytes = vec![0x5a; PacketSize::MOST_BYTES];
    let (mut written, mut full) = (0, false);
    let writes = series(limit.mul_f64(WRITING), |size| {
        if !watch() {
            return Err(ProbeError::Stopped);
        }
        if full || written + size as u64 > MOST_BYTES {
            return Ok(None);
        }
        match storage.write(&bytes[..size]) {
            Ok(took) => {
                written += size as u64;
                Ok(Some(took))
            }
            Err(error) if is_full(&error) => {
                full = true;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    })?;
    if writes.is_empty() {
        return Err(ProbeError::Full);
    }
    let settled = storage.settle()?;
    let mut bytes = bytes;
    let reads = series(limit.mul_f64(1.0 - WRITING), |size| {
        if !watch() {
            return Err(ProbeError::Stopped);
        }
        if size as u64 > written {
            return Ok(None);
        }
        Ok(Some(storage.read(&mut bytes[..size])?))
    })?;
    let settle_s_per_byte = settled.as_secs_f64() / written as f64;
    Ok(Probed { write: line(&writes), read: line(&reads), writes, reads, settle_s_per_byte, full })
}

/// Whether an error says that there is no room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Calls of each size, the smallest first, as long as time is left and `call` says how long one took.
fn series(
    limit: Duration,
    mut call: impl FnMut(usize) -> Result<Option<Duration>, ProbeError>,
) -> Result<Vec<Sample>, ProbeError> {
    let (mut left, mut samples) = (limit.as_secs_f64(), Vec::<Sample>::new());
    let sizes: Vec<usize> = packet_sizes().map(PacketSize::bytes).collect();
    for (i, &size) in sizes.iter().enumerate() {
        // At most twice what half of it took: with what is left there must be room for that.
        if samples.last().is_some_and(|half| 2.0 * half.seconds > left) {
            break;
        }
        let (share, mut took, mut calls) = (left / (sizes.len() - i) as f64, 0.0, Vec::new());
        while calls.len() < MOST_CALLS && (calls.len() < 3 || calls.len() * size < ENOUGH_BYTES) {
            if !calls.is_empty() && took >= share {
                break;
            }
            let Some(one) = call(size)? else { break };
            took += one.as_secs_f64();
            calls.push(one.as_secs_f64().max(1e-9));
        }
        if calls.is_empty() {
            break;
        }
        left -= took;
        samples.push(Sample { bytes: size, calls: calls.len(), seconds: median(&mut calls) });
    }
    Ok(samples)
}

/// The middle one, or the mean of the two in the middle; there is at least one.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(values[half - 1], values[half]) } else { values[half] }
}

/// Least squares of the relative error: a small packet counts as much as a large one. There is at least one sample.
fn line(samples: &[Sample]) -> Cost {
    let (mut w, mut wx, mut wxx, mut wt, mut wxt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for sample in samples {
        let (x, t) = (sample.bytes as f64, sample.seconds);
        let weight = 1.0 / (t * t);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wt += weight * t;
        wxt += weight * x * t;
    }
    let determinant = w * wxx - wx * wx;
    let (operation_s, per_byte) = ((wt * wxx - wx * wxt) / determinant, (w * wxt - wx * wt) / determinant);
    if samples.len() < 2 || operation_s < 0.0 || !operation_s.is_finite() {
        return Cost { operation_s: 0.0, rate: wxx / wxt };
    }
    if per_byte <= 0.0 {
        // Larger ones took no longer: noise. The rate is at least what the largest had.
        let rates = samples.iter().map(|sample| sample.bytes as f64 / sample.seconds);
        return Cost { operation_s: 0.0, rate: rates.fold(f64::MIN_POSITIVE, f64::max) };
    }
    Cost { operation_s, rate: 1.0 / per_byte }
}

/// A file in a folder that has no name, so that it is gone whatever happens to this process.
#[derive(Debug)]
pub struct Nameless {
    file: File,
    /// Where it begins again: written in circles, so that no more than this is ever taken.
    circle: u64,
    at: u64,
}

impl Nameless {
    /// In `folder`; written in circles of `circle` bytes.
    ///
    /// # Errors
    /// Of the file system.
    pub fn in_folder(folder: &Path, circle: u64) -> io::Result<Self> {
        let path = folder.join(format!(".lasthop-tune-{}", std::process::id()));
        let _ = fs::remove_file(&path); // of a process of this number that died between the two next calls
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(Self { file, circle, at: 0 })
    }

    /// Written in circles of `circle` bytes from now on.
    pub fn set_circle(&mut self, circle: u64) {
        self.circle = circle;
    }

    /// Back to the beginning, where the next byte is written or read.
    ///
    /// # Errors
    /// Of the file system.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.at = 0;
        self.file.rewind()
    }

    /// What was written leaves memory, so that it is read from the storage.
    fn forget(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed); // as far as the system can
    }
}

impl Storage for Nameless {
    fn write(&mut self, bytes: &[u8]) -> io::Result<Duration> {
        let since = Instant::now();
        self.file.write_all(bytes)?;
        Ok(since.elapsed())
    }

    fn settle(&mut self) -> io::Result<Duration> {
        let since = Instant::now();
        self.file.sync_all()?;
        let took = since.elapsed();
        self.forget();
        self.circle = self.file.stream_position()?;
        self.rewind()?;
        Ok(took)
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<Duration> {
        if self.at + bytes.len() as u64 > self.circle {
            self.forget();
            self.rewind()?;
        }
        self.at += bytes.len() as u64;
        let since = Instant::now();
        self.file.read_exact(bytes)?;
        Ok(since.elapsed())
    }
}

/// For a transfer of any length: each write is one of the file, from the beginning when it has gone round.
impl Write for Nameless {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.at + bytes.len() as u64 > self.circle {
            self.rewind()?;
        }
        let written = self.file.write(bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Of what has been written, from the beginning when the end is reached.
impl Read for Nameless {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.file.read(bytes)? {
            0 if self.file.metadata()?.len() > 0 => {
                self.forget();
                self.file.seek(SeekFrom::Start(0))?;
                self.file.read(bytes)
            }
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A storage that takes exactly what a line says.
    struct Fake {
        write: Cost,
        read: Cost,
        room: u64,
        written: u64,
        spent: Duration,
    }

    impl Fake {
        fn new(write: Cost, read: Cost) -> Self {
            Self { write, read, room: u64::MAX, written: 0, spent: Duration::ZERO }
        }

        fn takes(&mut self, cost: Cost, bytes: usize) -> Duration {
            let took = Duration::from_secs_f64(cost.seconds(bytes as f64));
            self.spent += took;
            took
        }
    }

    impl Storage for Fake {
        fn write(&mut self, bytes: &[u8]) -> io::Result<Duration> {
            if self.written + bytes.len() as u64 > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written += bytes.len() as u64;
            Ok(self.takes(self.write, bytes.len()))
        }

        fn settle(&mut self) -> io::Result<Duration> {
            Ok(Duration::ZERO)
        }

        fn read(&mut self, bytes: &mut [u8]) -> io::Result<Duration> {
            Ok(self.takes(self.read, bytes.len()))
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-3 * b
    }

    proptest! {
        #[test]
        fn a_storage_that_follows_the_line_is_found_in_bounded_time_and_bytes(
            operation_s in 1e-4..2e-2_f64, rate in 5e4..1e8_f64,
        ) {
            let (write, read) = (Cost { operation_s, rate }, Cost { operation_s: operation_s / 2.0, rate: 2.0 * rate });
            let mut fake = Fake::new(write, read);
            let probed = probe(&mut fake, Duration::from_secs(4), &mut || true).unwrap();
            for (found, is) in [(probed.write, write), (probed.read, read)] {
                prop_assert!(near(found.operation_s, is.operation_s) && near(found.rate, is.rate), "{found:?} is {is:?}");
            }
            prop_assert!(fake.spent <= Duration::from_millis(4800), "{:?}", fake.spent);
            prop_assert!(fake.written <= MOST_BYTES);
        }
    }

    #[test]
    fn a_storage_without_room_for_all_is_measured_as_far_as_it_goes() {
        let cost = Cost { operation_s: 0.001, rate: 1e6 };
        let mut fake = Fake { room: 20_000, ..Fake::new(cost, cost) };
        let probed = probe(&mut fake, Duration::from_secs(4), &mut || true).unwrap();
        assert!(probed.full && near(probed.write.rate, 1e6), "{probed:?}");
        let mut fake = Fake { room: 0, ..Fake::new(cost, cost) };
        assert!(matches!(probe(&mut fake, Duration::from_secs(4), &mut || true), Err(ProbeError::Full)));
    }

    #[test]
    fn noise_that_has_larger_packets_take_less_gives_a_cost_that_can_be_used() {
        for seconds in [[3e-6, 2e-6, 1e-6], [1e-6, 1e-6, 1e-6], [1e-6, 5e-6, 1e-3]] {
            let samples: Vec<Sample> =
                (0..3).map(|i| Sample { bytes: 512 << i, calls: 1, seconds: seconds[i] }).collect();
            let cost = line(&samples);
            assert!(cost.operation_s >= 0.0 && cost.rate > 0.0 && cost.rate.is_finite(), "{cost:?}");
        }
    }

    #[test]
    fn a_real_folder_is_measured_and_nothing_is_left_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Nameless::in_folder(folder.path(), 1 << 20).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let probed = probe(&mut file, Duration::from_secs(1), &mut || true).unwrap();
        assert!(probed.write.rate > 0.0 && probed.read.rate > 0.0 && !probed.reads.is_empty(), "{probed:?}");
        let stopped = probe(&mut Nameless::in_folder(folder.path(), 1).unwrap(), Duration::from_secs(1), &mut || false);
        assert!(matches!(stopped, Err(ProbeError::Stopped)));
    }

    #[test]
    fn a_long_transfer_goes_round_in_a_short_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Nameless::in_folder(folder.path(), 1000).unwrap();
        for _ in 0..100 {
            Write::write_all(&mut file, &[7; 300]).unwrap();
        }
        assert_eq!(file.file.metadata().unwrap().len(), 900);
        file.rewind().unwrap();
        let mut all = vec![0; 5000];
        Read::read_exact(&mut file, &mut all).unwrap();
        assert!(all.iter().all(|&byte| byte == 7));
    }
}
