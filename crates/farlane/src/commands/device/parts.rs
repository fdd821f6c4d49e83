//! The threads that serve the further connections of links.

use super::{Args, log_event, print_report};
use crate::log::Subject;
use crate::output::wrong_usage;
use live::attached::DrivePart;
use live::device::{DeviceEvent, FurtherConnection};
use live::{Clock, DeviceNode, NodeSettings, Stop};
use observe::Board;
use report::{Failure, Outcome};
use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use switch::tunnel::Settings;
use wire::frame::LinkConnection;

/// The maximum number of connections of a link, each with a thread.
const MOST: u16 = 64;

/// The connections of a link, if it has several. A mistake in an option ends the process.
pub fn connections(args: &Args) -> Option<LinkConnection> {
    let queue_pairs = args.queues_per_link?;
    let number = args.queues.div_ceil(queue_pairs);
    if number > MOST {
        wrong_usage(format!(
            "--queues {} with --queues-per-link {queue_pairs} needs {number} connections: expected \
             at most {MOST}",
            args.queues
        ))
    }
    if args.listen.len() > 1 {
        wrong_usage("--queues-per-link applies to one controller: expected one --listen")
    }
    (number > 1).then_some(LinkConnection { link: 0, number, queue_pairs })
}

/// The threads of further connections.
pub struct FurtherThreads<'scope> {
    stops: Vec<&'scope Stop>,
    threads: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
}

impl<'scope> FurtherThreads<'scope> {
    /// Serves further connections, from number 1 on, each with its request to stop. A failure stops
    /// the whole node.
    pub fn start(
        scope: &'scope Scope<'scope, '_>,
        further: impl Iterator<Item = (DrivePart, FurtherConnection, &'scope Stop)>,
        (clock, options, tunnel): (Clock, &'scope NodeSettings, Settings),
        whole: &'scope Stop,
        board: &'scope Board,
    ) -> Result<Self, Failure> {
        let mut own = Self { stops: Vec::new(), threads: Vec::new() };
        for (number, (part, way, stop)) in (1..).zip(further) {
            let serve = move || {
                let _ends = StopOnPanic(whole);
                let served = serve(number, (part, way), (clock, options, tunnel), stop, board);
                served.inspect_err(|_| whole.stop())
            };
            let thread = Builder::new().name(format!("link {number}")).spawn_scoped(scope, serve);
            own.stops.push(stop);
            match thread {
                Ok(thread) => own.threads.push(thread),
                Err(error) => {
                    own.stop()?;
                    return Err(error.into());
                }
            }
        }
        Ok(own)
    }

    /// Lets the threads print their counters.
    pub fn report(&self) {
        self.stops.iter().for_each(|stop| stop.request_report());
    }

    /// Stops the threads in order. Fails with the first error.
    pub fn stop(self) -> Outcome {
        self.stops.iter().for_each(|stop| stop.stop());
        let ended: Vec<_> = self.threads.into_iter().map(|thread| thread.join()).collect();
        let each = ended.into_iter().map(|ended| ended.expect("a thread does not panic"));
        each.collect::<io::Result<()>>().map_err(Failure::from)
    }
}

/// Stops the whole node if its thread panics.
struct StopOnPanic<'a>(&'a Stop);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Serves connection `number` until `stop`.
fn serve(
    number: u16,
    (part, way): (DrivePart, FurtherConnection),
    (clock, options, tunnel): (Clock, &NodeSettings, Settings),
    stop: &Stop,
    board: &Board,
) -> io::Result<()> {
    let own = tunnel.connection.map(|link| LinkConnection { number: 1, ..link });
    let settings = Settings { push: 0, connection: own, ..tunnel };
    let drive = part.into_drive();
    let node = DeviceNode::further(clock, options.poller()?, way, settings, drive)?;
    let mut node = node.with(|node| node.with_rate_limit(options.limit()));
    let print = |event| match event {
        DeviceEvent::Report(report) => print_report(&format!("connection {number}: "), &report),
        DeviceEvent::Status(request, mut status) => {
            status.links[0].name = format!("connection {number}");
            board.show(request, number.into(), *status);
        }
        event => log_event(&event, &format!("connection {number}: "), Subject::default()),
    };
    let ran = node.run(stop.fd(), || stop.request(), print);
    print(DeviceEvent::Report(node.report()));
    ran
}
