//! The live runner over loopback TCP, each node in a thread.

use super::live::{machine, run_of, subsystem, tracer};
use super::{Run, script};
use live::host::RamMemory;
use live::links::{LinkEvent, Links};
use live::net::{Address, LinkSettings, Listener};
use live::{Clock, Control, DeviceNode, NvmeDrive, Poller, Waiting};
use node::push::Mode;
use pcie::{Bus, Ram, root};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use storage::media::{Media, RamMedia};
use wire::Duration;
use wire::frame::Role;
use wire::trace::NodeRole;

/// Serves the drive until `stop` is set. Closing the other end of `wake` wakes the thread then.
fn device(
    folder: &Path,
    listener: Listener,
    wake: &UnixStream,
    stop: &AtomicBool,
) -> io::Result<()> {
    let clock = Clock::start();
    let tracer = tracer(folder, NodeRole::Device, clock)?;
    let media: Box<dyn Media> = Box::new(RamMedia::new(script::SIZE));
    let drive = NvmeDrive::new(subsystem(Mode::default()), BTreeMap::from([(1, media)]))
        .traced(tracer.clone());
    let poller = Poller::new(Waiting::Block)?;
    let settings = script::tunnel(Role::Device, Mode::default());
    let mut node = DeviceNode::new(clock, poller, listener, settings, drive)?;
    let wanted = || if stop.load(Ordering::Acquire) { Control::Stop } else { Control::Serve };
    node.run(wake.as_fd(), wanted, |_| {})?;
    tracer.finish().map(|_| ())
}

/// Runs `software` once the link is up, with trace files in `folder`.
pub fn run<T: Future<Output = ()> + 'static>(
    folder: &Path,
    software: impl FnOnce(Bus, Rc<RefCell<Ram>>) -> T,
) -> io::Result<Run> {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), LinkSettings::default())?;
    let links = Links::new(&[Address::from(listener.address()?)]);
    // Longer than the default, because a busy machine may be slow.
    let patient = Duration::from_ms(60_000);
    let settings = root::Settings { completion_timeout: patient, ..script::ROOT };
    let mut host = machine(folder, Clock::start(), settings, Mode::default(), links)?;
    let ram = Rc::new(RefCell::new(Ram::new(script::RAM.0, script::RAM.1)));
    let mut memory = RamMemory::new(ram.clone());
    let (stop, (wake, waker)) = (AtomicBool::new(false), UnixStream::pair()?);
    thread::scope(|scope| {
        let device = scope.spawn(|| device(folder, listener, &wake, &stop));
        while !matches!(host.attached_mut().links_mut().event(), Some(LinkEvent::Up(..))) {
            let (moved, timer) = host.pump(&mut memory)?;
            host.wait(moved, timer)?;
        }
        let bus = host.new_bus();
        let ran = host.run(&mut memory, &bus, software(bus.clone(), ram.clone()));
        stop.store(true, Ordering::Release);
        drop(waker);
        device.join().expect("the device node does not panic")?;
        ran
    })?;
    Ok(run_of(folder, &host, Vec::new(), &mut ram.borrow_mut()))
}
