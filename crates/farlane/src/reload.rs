//! SIGHUP: a running node reads its file again. `key_args` reads key and peers.

use crate::log;
use crate::node_file::{Changes, NodeFile};
use crate::output::{note, warning};
use live::TraceSwitch;
use observe::Board;
use signal_hook::consts::SIGHUP;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::Builder;
use switch::congestion::Rate;

/// Reads the file of the node again on each SIGHUP, in a thread that ends with the process. `each`
/// makes the limit of one thread of the limit of the node. Does nothing without a file.
pub fn on_hangup(
    file: Option<&NodeFile>,
    board: &Arc<Board>,
    each: impl Fn(Option<Rate>) -> Option<Rate> + Send + 'static,
) -> io::Result<()> {
    let Some(file) = file.cloned() else { return Ok(()) };
    let (mut wake, waker) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGHUP, waker)?;
    let board = board.clone();
    let serve = move || {
        // Several signals at once are one request.
        while wake.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {
            match file.read_again() {
                Ok(changes) => apply(changes, &board, &each),
                Err(mistakes) => {
                    warning(format_args!("{mistakes}; the earlier values stay in force"))
                }
            }
        }
    };
    Builder::new().name("reload".to_owned()).spawn(serve)?;
    Ok(())
}

fn apply(changes: Changes, board: &Board, each: impl Fn(Option<Rate>) -> Option<Rate>) {
    let Changes { log_level, rate_limit, traces, later } = changes;
    board.set_rate_limit(rate_limit, each(rate_limit));
    if let Some(on) = traces {
        board.switch_trace(if on { TraceSwitch::Start } else { TraceSwitch::Stop });
    }
    later.into_iter().for_each(warning);
    log::set_level(log_level);
    let limit = rate_limit.map_or("none".to_owned(), |rate| rate.to_string());
    note(format_args!("read the file of the node again; rate limit: {limit}"));
}
