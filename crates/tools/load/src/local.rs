//! Peers of a host in this process: device nodes, and a switch node for a cascade, each in a thread
//! of its own, on loopback.

use crate::TraceTarget;
use crate::initiator_host::{Hardware, InitiatorHost};
use credentials::{Cipher, Credentials, NodeKey, Peers};
use live::attached::{Attached, QUEUES, Switch, drive_settings};
use live::links::Links;
use live::net::{Address, CarrierListener, LinkSettings, RawSettings};
use live::trace::Tracer;
use live::{
    Clock, DeviceNode, LinkWait, NvmeDrive, PATIENCE, Poller, Stop, Waiting, random_number,
    wait_for_links,
};
use node::faults::Faults;
use node::push;
use nvme::initiator;
use report::{Failure, Outcome};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use switch::tunnel::Settings;
use wire::Duration;
use wire::frame::Role;
use wire::trace::NodeRole;

/// The settings of both ends of a link inside this process.
#[derive(Clone, Copy, Debug)]
pub struct LocalLink {
    /// The process's clock.
    pub clock: Clock,
    /// How nodes wait.
    pub waiting: Waiting,
    /// Maximum TLP payload in bytes.
    pub max_payload: u16,
    /// The aggregation policy.
    pub aggregation: Policy,
    /// Settings of push.
    pub push: push::Settings,
    /// The encryption of the link under TLS; `None`: plain TCP.
    pub cipher: Option<Cipher>,
}

impl LocalLink {
    /// Returns settings with a long loss limit: a link inside this process cannot be lost, but one
    /// end may wait long while another machine is measured.
    fn settings(self, role: Role) -> Settings {
        let Self { max_payload, aggregation, .. } = self;
        let loss_limit = Duration::from_ms(600_000);
        // A link that cannot be lost needs no keepalive frames.
        let keepalive = Duration::from_ms(60_000);
        let settings = Settings::new(role, random_number());
        Settings { max_payload, aggregation, loss_limit, keepalive, ..settings }
    }

    fn carriers(self) -> Result<LinkSettings, Failure> {
        let raw = RawSettings { give_up: Duration::from_ms(600_000), ..RawSettings::default() };
        let credentials = self.cipher.map(own_credentials).transpose()?;
        Ok(LinkSettings { raw, credentials, ..LinkSettings::default() })
    }
}

/// Credentials with which both ends of a link inside this process trust each other.
fn own_credentials(cipher: Cipher) -> Result<Arc<Credentials>, Failure> {
    static KEY: OnceLock<NodeKey> = OnceLock::new();
    let made = NodeKey::generate().map_err(|error| Failure(error.to_string()))?;
    let key = KEY.get_or_init(|| made);
    let peers = Peers::only("self", key.fingerprint());
    Ok(Credentials::new(key.clone(), peers, Some(cipher)).into())
}

/// How a node in a thread of this process serves.
pub struct NodeParts {
    /// The process's clock.
    pub clock: Clock,
    /// How the node waits.
    pub waiting: Waiting,
    /// Its end of links.
    pub tunnel: Settings,
    /// Settings of its connections.
    pub links: LinkSettings,
    /// Limit of its output.
    pub limit: Option<Rate>,
    /// Its faults.
    pub faults: Faults,
}

/// A node in a thread, which ends when the value is dropped.
pub struct Node {
    /// Address on which the node listens.
    pub address: Address,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Outcome>>,
}

impl Node {
    /// Starts a device node at `at`, in the network namespace of the caller, with a drive of `size`
    /// bytes of RAM. The node records into `trace`.
    ///
    /// # Errors
    /// If the node does not start.
    pub fn device(
        at: &Address,
        link: LocalLink,
        number: usize,
        size: u64,
        trace: TraceTarget,
    ) -> Result<Self, Failure> {
        let make = move || {
            let settings = drive_settings(link.max_payload.into(), QUEUES);
            let made = NvmeDrive::of_ram(&format!("FARLANE-DEMO-{number}"), size, settings)?;
            let tracer = trace.open(NodeRole::Device, random_number(), link.clock)?;
            Ok(made.traced(tracer))
        };
        Self::start(at, link, switch::push_store::CAPACITY, make, |_, _| Ok(()))
    }

    /// Starts a switch node in front of `devices`.
    ///
    /// # Errors
    /// If the node does not start.
    pub fn switch(
        link: LocalLink,
        devices: Vec<Address>,
        trace: TraceTarget,
    ) -> Result<Self, Failure> {
        let make = move || {
            let tracer = trace.open(NodeRole::Switch, random_number(), link.clock);
            Ok(host_switch(link, &devices)?.traced(tracer?))
        };
        Self::start(&loopback(), link, 0, make, |node, stop| Ok(wait_for_links(node, stop)?))
    }

    fn start<A: Attached>(
        at: &Address,
        link: LocalLink,
        push: u32,
        make: impl FnOnce() -> Result<A, Failure> + Send + 'static,
        ready: impl FnOnce(&mut DeviceNode<A>, &Stop) -> Outcome + Send + 'static,
    ) -> Result<Self, Failure> {
        let tunnel = Settings { push, ..link.settings(Role::Device) };
        let LocalLink { clock, waiting, .. } = link;
        let parts = NodeParts {
            clock,
            waiting,
            tunnel,
            links: link.carriers()?,
            limit: None,
            faults: Faults::default(),
        };
        Self::serve(at, parts, make, ready)
    }

    /// Starts a node at `at`, in the network namespace of the caller. `make` creates the function
    /// below its port; `ready` returns when the node is ready.
    ///
    /// # Errors
    /// If the node does not start.
    pub fn serve<A: Attached>(
        at: &Address,
        parts: NodeParts,
        make: impl FnOnce() -> Result<A, Failure> + Send + 'static,
        ready: impl FnOnce(&mut DeviceNode<A>, &Stop) -> Outcome + Send + 'static,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(Stop::new()?);
        let handle = stop.clone();
        let (announce, announced) = channel();
        let at = at.clone();
        let serve = move || {
            let NodeParts { clock, waiting, tunnel, links, limit, faults } = parts;
            let attached = make()?;
            let tracer = attached.tracer();
            let listener = CarrierListener::bind(&at, links)?;
            let poller = Poller::new(waiting)?;
            let node = DeviceNode::new(clock, poller, listener, tunnel, attached)?;
            let mut node = node.with(|node| node.with_rate_limit(limit)).with_faults(faults);
            ready(&mut node, &stop)?;
            let _ = announce.send(node.address()?);
            node.run(stop.fd(), || stop.request(), |_| {})?;
            tracer.finish()?;
            Ok(())
        };
        let thread = std::thread::spawn(serve);
        match announced.recv() {
            Ok(address) => Ok(Self { address, stop: handle, thread: Some(thread) }),
            Err(_) => Err(match thread.join() {
                Ok(Err(why)) => why,
                _ => Failure("the node's thread ended before it was ready".into()),
            }),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a loopback address with any free port.
pub fn loopback() -> Address {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()
}

/// Creates the switch of a host node, with a link to each of `devices`.
fn host_switch(link: LocalLink, devices: &[Address]) -> Result<Switch, Failure> {
    let upstream = switch::upstream::Settings {
        ports: devices.len() as u8,
        max_payload: usize::from(link.max_payload),
        p2p: false,
        tunnel: link.settings(Role::Host),
    };
    Ok(Switch::new(upstream, Links::new(devices).over(link.carriers()?)))
}

/// Starts a host node with a link to each of `devices`, all up. The node records a trace.
///
/// # Errors
/// If a link does not come up.
pub fn host(
    link: LocalLink,
    driver: initiator::Settings,
    devices: &[Address],
    tracer: Tracer,
) -> Result<InitiatorHost<Switch>, Failure> {
    let mut links = LinkWait::new(link.clock.now(), PATIENCE);
    let switch = host_switch(link, devices)?.traced(tracer);
    let ready = |switch: &mut Switch| Ok(links.check(link.clock.now(), switch)?);
    let hardware = Hardware { push: link.push, ..Hardware::default() };
    InitiatorHost::start(link.clock, Poller::new(link.waiting)?, hardware, driver, switch, ready)
}

/// Starts a host with a drive of `size` bytes of RAM directly below its root port.
///
/// # Errors
/// If the host does not come up.
pub fn direct(
    link: LocalLink,
    driver: initiator::Settings,
    serial: &str,
    size: u64,
) -> Result<InitiatorHost<NvmeDrive>, Failure> {
    let settings = drive_settings(link.max_payload.into(), QUEUES);
    let attached = NvmeDrive::of_ram(serial, size, settings)?;
    let poller = Poller::new(link.waiting)?;
    InitiatorHost::start(link.clock, poller, Hardware::default(), driver, attached, |_| Ok(true))
}
