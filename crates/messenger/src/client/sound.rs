//! What a file says of its sound.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long a WAV file plays; `None` for any other file, and for one that does not say. Only a plain file is opened: a named
/// pipe would keep whoever opens it until somebody writes.
#[must_use]
pub fn length(path: &Path) -> Option<Duration> {
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    let reader = hound::WavReader::open(path).ok()?;
    let (samples, rate) = (reader.duration(), reader.spec().sample_rate);
    (rate > 0).then(|| Duration::from_secs_f64(f64::from(samples) / f64::from(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wav_says_how_long_it_plays_and_other_files_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let spec = hound::WavSpec {
            channels: 2,
            sample_rate: 8000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        (0..2 * 12_000).for_each(|sample| writer.write_sample(sample as i16).unwrap());
        writer.finalize().unwrap();
        assert_eq!(length(&path), Some(Duration::from_millis(1500)));
        for bytes in [&b""[..], b"no sound", &std::fs::read(&path).unwrap()[..20]] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(length(&path), None);
        }
    }
}
