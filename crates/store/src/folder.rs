//! The folder: a file per finished run, and packs of them.
//!
//! ```text
//! store.json               {"format":1}: this folder is a store
//! runs/ba/ba78...ad.json   one report as compact JSON and a line feed, `run.wall_s` 0: how long it took is not a part of it
//! packs/4f...9c.jsonl.gz   reports of a stretch of a plan, as `zcat` shows them; the first gzip member is one line with their keys
//! table.parquet            the table of the newest sweep
//! manifest.json            what that table holds
//! ```
//!
//! A file is written aside (`.tmp...`) and renamed, so that none is ever there in part; a pack is on disk before the files that went
//! into it are removed. Any number of processes may add runs at once: two that did the same run wrote the same bytes. What is left of
//! a process that was killed (`.tmp...`) is removed by the next [`Store::pack`] a day later at the earliest.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use flate2::write::GzEncoder;

use crate::{Key, StoreError};

/// So many runs make a pack, of some 2 MB.
const PACK: usize = 4096;
/// Longest line of keys of a pack: twice that of [`PACK`] keys, bytes.
const LONGEST_HEAD: u64 = 2 * 66 * PACK as u64;
/// Largest pack, unpacked, bytes; larger reports make smaller packs.
const LARGEST_PACK: u64 = 1 << 30;
/// What is left of a process that was killed is older than anything that is being written.
const LEFT: Duration = Duration::from_secs(86_400);
const MARK: &str = "{\"format\":1}\n";

/// The reports of one pack: its text, and where each line ends. A line of its own for each, grown as it is read, would take twice as much.
#[derive(Debug)]
struct Reports {
    text: String,
    ends: Vec<usize>,
}

impl Reports {
    fn at(&self, place: usize) -> Option<&str> {
        let from = place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|end| end + 1))?;
        self.text.get(from..*self.ends.get(place)?)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    packs: Vec<PathBuf>,
    /// Pack, and place in it.
    packed: HashMap<Key, (u32, u32)>,
    /// The pack that was read last: tables are read in the order of plans, and so are packs written.
    newest: Option<(u32, Reports)>,
}

impl Store {
    /// Runs of a stretch of a plan that is packed together.
    pub const PACK: usize = PACK;

    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// It cannot be made or read, or holds files that are not of a store.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let mark = root.join("store.json");
        match fs::read_to_string(&mark) {
            Ok(text) if text == MARK => {}
            Ok(_) => return Err(StoreError::Strange(format!("{}: is of another version of Lasthop", mark.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(root, &mark)?,
            Err(error) => return Err(StoreError::io(format!("{}: cannot be read", mark.display()))(error)),
        }
        let mut store = Self { root: root.to_owned(), packs: Vec::new(), packed: HashMap::new(), newest: None };
        store.read_packs()?;
        Ok(store)
    }

    /// Whether `root` is a store.
    #[must_use]
    pub fn is_at(root: &Path) -> bool {
        fs::read_to_string(root.join("store.json")).is_ok_and(|text| text == MARK)
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the keys of packs that were not there before.
    fn read_packs(&mut self) -> Result<(), StoreError> {
        let folder = self.root.join("packs");
        let entries = fs::read_dir(&folder).map_err(StoreError::io(format!("{}: cannot be read", folder.display())))?;
        let mut new: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|p| is_pack(p)).collect();
        new.retain(|path| !self.packs.contains(path));
        new.sort();
        for path in new {
            let at = self.packs.len() as u32;
            for (place, key) in keys_of(&path)?.into_iter().enumerate() {
                self.packed.entry(key).or_insert((at, place as u32));
            }
            self.packs.push(path);
        }
        Ok(())
    }

    fn loose(&self, key: Key) -> PathBuf {
        loose(&self.root, key)
    }

    /// The places of those `keys` whose runs are not there.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn missing(&mut self, keys: impl Iterator<Item = Key>) -> Result<Vec<usize>, StoreError> {
        self.read_packs()?;
        let mut missing = Vec::new();
        for (place, key) in keys.enumerate() {
            if !self.packed.contains_key(&key) && read_loose(&self.loose(key))?.is_none() {
                missing.push(place);
            }
        }
        Ok(missing)
    }

    /// Keeps `report`, compact JSON, as that of the run `key`.
    ///
    /// # Errors
    /// It cannot be written; what was there is there still.
    pub fn put(&self, key: Key, report: &str) -> Result<(), StoreError> {
        Self::put_at(&self.root, key, report)
    }

    /// [`Store::put`] of the store at `root`, whose packs need not be read for it.
    ///
    /// # Errors
    /// As there.
    pub fn put_at(root: &Path, key: Key, report: &str) -> Result<(), StoreError> {
        let path = loose(root, key);
        let failed = |error| StoreError::io(format!("{}: cannot be written", path.display()))(error);
        let folder = path.parent().unwrap_or(root);
        let write = || -> io::Result<()> {
            let mut file = match beside(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(folder)?;
                    beside(folder)?
                }
                file => file?,
            };
            let mut line = Vec::with_capacity(report.len() + 1);
            line.extend(report.as_bytes());
            line.push(b'\n');
            file.write_all(&line)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(failed)
    }

    /// The report of the run `key`, compact JSON, if it is there.
    ///
    /// # Errors
    /// A file cannot be read, or is not as it was written.
    pub fn get(&mut self, key: Key) -> Result<Option<String>, StoreError> {
        if !self.packed.contains_key(&key) {
            if let Some(report) = read_loose(&self.loose(key))? {
                return Ok(Some(report));
            }
            // Another process may have packed it.
            self.read_packs()?;
        }
        let Some((pack, place)) = self.packed.get(&key).copied() else { return Ok(None) };
        let path = &self.packs[pack as usize];
        // One at a time: the one before goes first.
        self.newest = self.newest.take().filter(|(at, _)| *at == pack);
        let (_, reports) = match &mut self.newest {
            Some(newest) => newest,
            none => none.insert((pack, reports_of(path)?)),
        };
        Ok(Some(reports.at(place as usize).ok_or_else(|| damaged(path))?.to_owned()))
    }

    /// Whether the run `key` is there as a file of its own, and not in part.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_put_at(root: &Path, key: Key) -> Result<bool, StoreError> {
        Ok(read_loose(&loose(root, key))?.is_some())
    }

    /// Packs every stretch of [`Store::PACK`] of `keys` (the last may be shorter) whose runs are all there and not packed yet.
    ///
    /// # Errors
    /// A pack cannot be written; nothing is removed then.
    pub fn pack(&mut self, keys: impl Iterator<Item = Key>) -> Result<(), StoreError> {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let stretch: Vec<Key> = keys.by_ref().take(PACK).filter(|key| !self.packed.contains_key(key)).collect();
            if stretch.is_empty() {
                continue;
            }
            let mut reports = Vec::with_capacity(stretch.len());
            for key in &stretch {
                match read_loose(&self.loose(*key))? {
                    Some(report) => reports.push(report),
                    None => break,
                }
            }
            if reports.len() == stretch.len() {
                self.write_pack(&stretch, &reports)?;
            }
        }
        self.read_packs()?;
        self.clear_left();
        Ok(())
    }

    fn write_pack(&self, keys: &[Key], reports: &[String]) -> Result<(), StoreError> {
        let folder = self.root.join("packs");
        let path = folder.join(format!("{}.jsonl.gz", Key::of_keys(keys.iter().copied())));
        let write = || -> io::Result<()> {
            let head: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
            let mut first = GzEncoder::new(Vec::new(), Compression::fast());
            writeln!(first, "[{}]", head.join(","))?;
            let mut second = GzEncoder::new(Vec::new(), Compression::default());
            for report in reports {
                second.write_all(report.as_bytes())?;
                second.write_all(b"\n")?;
            }
            let mut file = beside(&folder)?;
            file.write_all(&first.finish()?)?;
            file.write_all(&second.finish()?)?;
            keep(file, &path)
        };
        write().map_err(StoreError::io(format!("{}: cannot be written", path.display())))?;
        for key in keys {
            // One that stays costs its space alone.
            let _ = fs::remove_file(self.loose(*key));
        }
        Ok(())
    }

    /// Writes a file of the folder whole.
    ///
    /// # Errors
    /// It cannot be written; what was there is there still.
    pub fn replace(&self, path: &Path, contents: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), StoreError> {
        let write = || {
            let mut file = beside(path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
            contents(file.as_file_mut())?;
            keep(file, path)
        };
        write().map_err(StoreError::io(format!("{}: cannot be written", path.display())))
    }

    fn clear_left(&self) {
        let folders = [self.root.clone(), self.root.join("packs"), self.root.join("runs")];
        let inner = fs::read_dir(self.root.join("runs")).into_iter().flatten().flatten().map(|entry| entry.path());
        for folder in folders.into_iter().chain(inner) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let is_ours = entry.file_name().to_string_lossy().starts_with(".tmp");
                let written = entry.metadata().and_then(|it| it.modified()).ok();
                let is_old =
                    written.and_then(|at| SystemTime::now().duration_since(at).ok()).is_some_and(|age| age > LEFT);
                if is_ours && is_old {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

fn loose(root: &Path, key: Key) -> PathBuf {
    let name = key.to_string();
    root.join("runs").join(&name[..2]).join(format!("{name}.json"))
}

fn make(root: &Path, mark: &Path) -> Result<(), StoreError> {
    let failed = || StoreError::io(format!("{}: cannot be made a store", root.display()));
    fs::create_dir_all(root).map_err(failed())?;
    let mut there = fs::read_dir(root).map_err(failed())?.flatten();
    // Another process may be making it, too.
    if let Some(other) = there.find(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        !["store.json", "runs", "packs"].contains(&&*name) && !name.starts_with('.')
    }) {
        return Err(StoreError::Strange(format!(
            "{}: is no store of a sweep, and holds {}; give a new or an empty folder",
            root.display(),
            other.file_name().to_string_lossy()
        )));
    }
    fs::create_dir_all(root.join("runs")).map_err(failed())?;
    fs::create_dir_all(root.join("packs")).map_err(failed())?;
    let mut file = beside(root).map_err(failed())?;
    file.write_all(MARK.as_bytes()).map_err(failed())?;
    keep(file, mark).map_err(failed())
}

fn beside(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // As any other file of its user: a cluster's workers may be others.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.prefix(".tmp").tempfile_in(folder)
}

/// On disk, then at its name.
fn keep(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn is_pack(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".jsonl.gz"))
}

/// A report that is there in whole; after a power cut a file may be empty or end early.
fn read_loose(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(mut text) if text.ends_with("}\n") => {
            text.pop();
            Ok(Some(text))
        }
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => Ok(None),
        Err(error) => Err(StoreError::io(format!("{}: cannot be read", path.display()))(error)),
    }
}

fn damaged(path: &Path) -> StoreError {
    StoreError::Strange(format!("{}: is not as it was written; remove it, and its runs are run again", path.display()))
}

fn opened(path: &Path) -> Result<BufReader<File>, StoreError> {
    File::open(path).map(BufReader::new).map_err(StoreError::io(format!("{}: cannot be read", path.display())))
}

fn keys_of(path: &Path) -> Result<Vec<Key>, StoreError> {
    let mut head = Vec::new();
    GzDecoder::new(opened(path)?).take(LONGEST_HEAD).read_to_end(&mut head).map_err(|_| damaged(path))?;
    let names: Vec<String> = serde_json::from_slice(&head).map_err(|_| damaged(path))?;
    names.iter().map(|name| name.parse().map_err(|()| damaged(path))).collect()
}

fn reports_of(path: &Path) -> Result<Reports, StoreError> {
    // The keys are a member of their own, before the reports'.
    let mut members = BufReader::new(MultiGzDecoder::new(opened(path)?).take(LARGEST_PACK));
    members.skip_until(b'\n').map_err(|_| damaged(path))?;
    let mut text = String::new();
    members.read_to_string(&mut text).map_err(|_| damaged(path))?;
    text.shrink_to_fit();
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    Ok(Reports { text, ends })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn key(i: usize) -> Key {
        Key::of_bytes(&i.to_le_bytes())
    }

    fn report(i: usize) -> String {
        format!("{{\"seed\":{i}}}")
    }

    #[test]
    fn what_was_put_is_there_before_and_after_it_is_packed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("out");
        let mut store = Store::open(&root).unwrap();
        let keys: Vec<Key> = (0..PACK + 10).map(key).collect();
        for i in (0..keys.len()).rev().filter(|i| *i != PACK + 3) {
            store.put(keys[i], &report(i)).unwrap();
        }
        assert_eq!(store.missing(keys.iter().copied()).unwrap(), [PACK + 3]);
        store.pack(keys.iter().copied()).unwrap();
        // The stretch that is whole.
        assert_eq!((store.packs.len(), store.packed.len()), (1, PACK));
        let mut other = Store::open(&root).unwrap();
        for store in [&mut store, &mut other] {
            assert_eq!(store.missing(keys.iter().copied()).unwrap(), [PACK + 3]);
            for i in [0, 1, PACK - 1, PACK, PACK + 9] {
                assert_eq!(store.get(keys[i]).unwrap(), Some(report(i)), "{i}");
            }
            assert_eq!(store.get(keys[PACK + 3]).unwrap(), None);
        }
        // One process packs, and another that had opened the folder before finds what is there.
        store.put(keys[PACK + 3], &report(PACK + 3)).unwrap();
        store.pack(keys.iter().copied()).unwrap();
        assert_eq!(other.get(keys[PACK + 5]).unwrap(), Some(report(PACK + 5)));
        assert!(other.missing(keys.iter().copied()).unwrap().is_empty());
        assert_eq!(fs::read_dir(root.join("packs")).unwrap().count(), 2);
        let loose = fs::read_dir(root.join("runs")).unwrap().flatten().map(|e| fs::read_dir(e.path()).unwrap().count());
        assert_eq!(loose.sum::<usize>(), 0);
    }

    #[test]
    fn packs_are_the_same_whatever_was_there_when() {
        let made = |order: &[usize]| {
            let folder = tempfile::tempdir().unwrap();
            let mut store = Store::open(folder.path()).unwrap();
            let keys: Vec<Key> = (0..order.len()).map(key).collect();
            for (n, i) in order.iter().enumerate() {
                store.put(keys[*i], &report(*i)).unwrap();
                if n % 3 == 0 {
                    store.pack(keys.iter().copied()).unwrap();
                }
            }
            store.pack(keys.iter().copied()).unwrap();
            let packs = fs::read_dir(folder.path().join("packs")).unwrap().flatten().map(|e| e.path());
            packs.map(|p| (p.file_name().unwrap().to_owned(), fs::read(&p).unwrap())).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(made(&[0, 1, 2, 3, 4]), made(&[4, 2, 0, 3, 1]));
    }

    #[test]
    fn what_is_torn_is_missing_and_what_is_no_store_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        store.put(key(1), &report(1)).unwrap();
        fs::write(store.loose(key(1)), "{\"seed\"").unwrap();
        assert_eq!(store.missing([key(1)].into_iter()).unwrap(), [0]);
        assert_eq!(store.get(key(1)).unwrap(), None);
        store.put(key(1), &report(1)).unwrap();
        store.pack([key(1)].into_iter()).unwrap();
        let pack = store.packs[0].clone();
        fs::write(&pack, "nonsense").unwrap();
        let error = Store::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("remove it") && error.contains(&pack.display().to_string()), "{error}");
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.tex"), "").unwrap();
        assert!(Store::open(other.path()).unwrap_err().to_string().contains("thesis.tex"));
    }
}
