//! `--log-level` and `--log-format`: the log of a node on standard error. `live::limiter` limits the
//! rate of events.

use crate::output::one_of;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use live::net::Remote;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::{self, Debug, Display};
use std::sync::OnceLock;
use std::time::SystemTime;
use std::{env, io};
pub use tracing::Level;
use tracing::field::{Field, Visit, display};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// Options of the log.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Least severe events of the log on stderr
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = levels())]
    log_level: Level,
    /// Form of the log. docs/command-line.md describes the lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: FormatOption,
}

fn levels() -> impl TypedValueParser<Value = Level> {
    let levels = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG];
    one_of(levels, |level| match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        _ => "debug",
    })
}

/// The value of `--log-format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatOption {
    /// Time, level and message. In systemd's journal, priority and message
    Text,
    /// One JSON object per line
    Json,
}

impl LogArgs {
    /// Starts the log. From here on, [`warning`](crate::output::warning) and
    /// [`note`](crate::output::note) write to it.
    pub fn start(&self) {
        let format = match self.log_format {
            FormatOption::Json => Format::Json,
            FormatOption::Text if is_journal() => Format::Journal,
            FormatOption::Text => Format::Text,
        };
        // A report of an error of standard error would go there too, and panic.
        let log = layer().log_internal_errors(false).with_writer(io::stderr).event_format(format);
        let (filter, handle) = reload::Layer::new(LevelFilter::from_level(self.log_level));
        tracing_subscriber::registry().with(filter).with(log).init();
        let set = move |level| drop(handle.reload(LevelFilter::from_level(level)));
        let first = SET_LEVEL.set(Box::new(set)).is_ok();
        debug_assert!(first, "a process has one log");
    }
}

/// Changes the least severe level of the log.
static SET_LEVEL: OnceLock<Box<dyn Fn(Level) + Send + Sync>> = OnceLock::new();

/// Writes events of `level` and more severe ones from here on. Does nothing without a log.
pub fn set_level(level: Level) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// Whether the log has started: not in commands other than nodes.
pub fn is_started() -> bool {
    tracing::dispatcher::has_been_set()
}

/// What an event is about: fields of the JSON form. The message names it too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The peer of a device or switch node.
    pub peer: Option<&'a Remote>,
    /// The downstream port of a host node.
    pub port: Option<usize>,
    /// The endpoint of a host node.
    pub endpoint: Option<usize>,
    /// The controller, from 1 on, if there are several.
    pub controller: Option<usize>,
}

/// Writes an event to the log.
pub fn event(level: Level, subject: Subject<'_>, message: impl Display) {
    let Subject { peer, port, endpoint, controller } = subject;
    let peer = peer.map(display);
    // The level of each call of tracing's macros is constant.
    macro_rules! write {
        ($macro:ident) => {
            tracing::$macro!(peer, port, endpoint, controller, "{message}")
        };
    }
    match level {
        Level::ERROR => write!(error),
        Level::WARN => write!(warn),
        _ => write!(info),
    }
}

/// Whether systemd's journal reads standard error: JOURNAL_STREAM has its device and inode
/// (systemd.exec(5)).
fn is_journal() -> bool {
    rustix::fs::fstat(io::stderr()).is_ok_and(|file| {
        env::var("JOURNAL_STREAM")
            .is_ok_and(|text| text == format!("{}:{}", file.st_dev, file.st_ino))
    })
}

/// The form of a line.
#[derive(Clone, Copy, Debug)]
enum Format {
    Text,
    Journal,
    Json,
}

impl<S, N> FormatEvent<S, N> for Format
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let time = DateTime::<Utc>::from(SystemTime::now());
        let level = event.metadata().level();
        let mut line = Line {
            time: time.to_rfc3339_opts(SecondsFormat::Millis, true),
            level: level.as_str(),
            message: String::new(),
            fields: Map::new(),
        };
        event.record(&mut line);
        match self {
            Self::Text => writeln!(writer, "{} {level} {}", line.time, one_line(&line.message)),
            Self::Journal => writeln!(writer, "<{}>{}", priority(level), one_line(&line.message)),
            Self::Json => {
                let object = serde_json::to_string(&line).expect("strings and numbers");
                writeln!(writer, "{object}")
            }
        }
    }
}

/// A line of the log.
#[derive(Serialize)]
struct Line {
    time: String,
    level: &'static str,
    message: String,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => drop(self.fields.insert(name.to_owned(), text.into())),
        }
    }
}

/// The priority of syslog(3) in front of a line for systemd's journal (sd-daemon(3)).
fn priority(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// Escapes control characters: the text of a peer, or the name of a file, makes no line of its own
/// and sends nothing to a terminal.
fn one_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, letter| {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
        line
    })
}
