//! What a run is recorded into: a capture, a trace, its course. The engine has one end of each, their writers are here.

use crate::engine::{Engine, Remains};
use crate::error::Error;
use crate::home::Home;
use crate::pcap;
use crate::spool::Writer;
use crate::trace::{self, Counters, TraceWriter};
use lasthop_home::course::Course;
use lasthop_home::scenario::Scenario;
use std::path::PathBuf;

/// Where to.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// A capture of every interface.
    pub pcap: Option<PathBuf>,
    /// A line per TCP segment.
    pub trace: Option<PathBuf>,
    /// Whether to keep what the run does over time.
    pub course: bool,
}

/// Both ends of what is recorded into.
#[derive(Debug, Default)]
pub struct Recording {
    capture: Option<(pcap::Capture, Writer)>,
    trace: Option<(trace::Trace, TraceWriter)>,
    paths: Paths,
}

/// The writers' ends.
#[derive(Debug)]
pub struct Writers {
    capture: Option<Writer>,
    trace: Option<TraceWriter>,
    paths: Paths,
}

impl Recording {
    /// Opens the files.
    ///
    /// # Errors
    /// [`Error::Capture`] with the one that cannot be written.
    pub fn start(paths: Paths, scenario: &Scenario, home: &Home, revision: &str) -> Result<Self, Error> {
        let capture = paths.pcap.as_deref().map(|path| pcap::start(path, &home.interface_names())).transpose()?;
        let course = paths.course.then(|| Course::new(scenario));
        let is_wanted = paths.trace.is_some() || paths.course;
        let start = || trace::start(paths.trace.as_deref(), course, scenario, revision, home.plan());
        let trace = is_wanted.then(start).transpose()?;
        Ok(Self { capture, trace, paths })
    }

    /// Whether to keep what the run does over time.
    #[must_use]
    pub const fn wants_course(&self) -> bool {
        self.paths.course
    }

    /// Gives the engine its ends.
    pub fn attach(self, engine: &mut Engine) -> Writers {
        let (capture, capture_writer) = self.capture.unzip();
        let (trace, trace_writer) = self.trace.unzip();
        if let Some(capture) = capture {
            engine.capture_into(capture);
        }
        if let Some(trace) = trace {
            engine.trace_into(trace);
        }
        Writers { capture: capture_writer, trace: trace_writer, paths: self.paths }
    }
}

impl Writers {
    /// Writes out what the engine left, and says what is lacking; with the windows of the run's course, where that is kept.
    ///
    /// # Errors
    /// [`Error::Capture`] with the file whose writing failed.
    pub fn finish(self, remains: &mut Remains) -> Result<(Vec<String>, Option<Course>), Error> {
        let refuse = |path: Option<PathBuf>| move |source| Error::Capture { path: path.unwrap_or_default(), source };
        let is_written = self.paths.trace.is_some();
        let (mut notes, mut course) = (Vec::new(), None);
        if let (Some(capture), Some(writer)) = (remains.capture.take(), self.capture) {
            let missed = capture.finish(writer).map_err(refuse(self.paths.pcap))?;
            if missed > 0 {
                notes.push(format!("the capture lacks {missed} frames: the disk was too slow"));
            }
        }
        if let (Some(trace), Some(writer)) = (remains.trace.take(), self.trace) {
            let told = trace.finish(writer).map_err(refuse(self.paths.trace))?;
            // Without a file, what a page shows lacks only what found no room.
            let Counters { missed, .. } = told.0;
            let counters = if is_written { told.0 } else { Counters { missed, ..Counters::default() } };
            notes.extend(lacking(counters));
            course = told.1;
        }
        Ok((notes, course))
    }
}

fn lacking(of: Counters) -> Option<String> {
    let Counters { missed, unknown, forgotten, copies } = of;
    let parts = [
        (missed, "events, for the disk was too slow"),
        (unknown, "segments of connections that began before it or were forgotten"),
        (forgotten, "segments that vanished on their way"),
        (copies, "copies that the access point sent"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!parts.is_empty()).then(|| format!("the trace lacks {}", parts.join(", ")))
}
