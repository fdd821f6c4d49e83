//! `--control` and `--metrics`: where a node serves its state.

use crate::output::{warning, wrong_usage};
use linux::UserGroup;
use live::NodeSettings;
use observe::document::{Limits, NodeDocument};
use observe::{Board, http};
use report::Failure;
use sandbox::{Access, Needs};
use std::env;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfio_user::{BindError, Listener};

/// The options of device, switch and host nodes.
#[derive(clap::Args, Clone, Debug)]
pub struct ObserveArgs {
    /// Socket for `farlane status`, or off. By default ROLE-PID.sock in $RUNTIME_DIRECTORY, or in
    /// /run/farlane (root), or in $XDG_RUNTIME_DIR/farlane
    #[arg(long, value_name = "SOCKET", value_parser = parse_control)]
    control: Option<Control>,
    /// Group whose members may use the control socket, besides its owner and root
    #[arg(long, value_name = "GROUP")]
    control_group: Option<UserGroup>,
    /// Serve metrics and state over HTTP on this address: HOST:PORT. Any user of this machine can read
    /// loopback; other addresses need --key, and peers the right status
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
}

/// The value of `--control`.
#[derive(Clone, Debug)]
enum Control {
    Off,
    At(PathBuf),
}

fn parse_control(text: &str) -> Result<Control, String> {
    match text {
        "" => Err("expected a path or off".into()),
        "off" => Ok(Control::Off),
        path => Ok(Control::At(path.into())),
    }
}

/// The sockets of a node that does not yet serve.
pub struct Observed {
    control: Option<Listener>,
    metrics: Option<TcpListener>,
}

/// Keeps the socket of a node.
pub struct Serving {
    /// Where the node shows its state.
    pub board: Arc<Board>,
    /// The file of the socket, removed on drop.
    _control: Option<Listener>,
}

impl ObserveArgs {
    /// Binds the sockets, before the sandbox and other threads. Fails if an address that the user
    /// named cannot be used.
    pub fn bind(
        &self,
        role: &str,
        settings: &NodeSettings,
        needs: &mut Needs,
    ) -> Result<Observed, Failure> {
        let control = match &self.control {
            Some(Control::Off) => None,
            Some(Control::At(path)) => Some(self.listen(path.clone())?),
            None => self.default_socket(role),
        };
        if let Some(folder) = control.as_ref().and_then(|control| control.path().parent()) {
            needs.path(folder, Access::Sockets);
        }
        let metrics = self.metrics.as_deref();
        let metrics = metrics.map(|text| listen_for_metrics(text, settings)).transpose()?;
        Ok(Observed { control, metrics })
    }

    /// The default socket; without it the node works too.
    fn default_socket(&self, role: &str) -> Option<Listener> {
        let folder = folders().into_iter().next()?;
        let path = folder.join(format!("{role}-{}.sock", std::process::id()));
        let bound = self.listen(path);
        bound.inspect_err(|failure| warning(format_args!("no control socket: {failure}"))).ok()
    }

    fn listen(&self, path: PathBuf) -> Result<Listener, Failure> {
        // No other user can connect before the group is set.
        let bound = Listener::at(path.clone(), Some(0o600));
        let listener = bound.map_err(|error: BindError| Failure(error.to_string()))?;
        let Some(group) = &self.control_group else { return Ok(listener) };
        let fail = |error| Failure(format!("{}: --control-group: {error}", path.display()));
        chown(&path, None, Some(group.id)).map_err(fail)?;
        let mode = PermissionsExt::from_mode(0o660);
        std::fs::set_permissions(&path, mode).map_err(fail)?;
        Ok(listener)
    }
}

/// The folders of default sockets, the one for new sockets first.
pub fn folders() -> Vec<PathBuf> {
    let under = |name: &str| env::var_os(name).filter(|folder| !folder.is_empty());
    let is_root = rustix::process::geteuid().is_root();
    let own = under("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("farlane"));
    // A unit may have several, separated by colons (systemd.exec(5)).
    let unit = under("RUNTIME_DIRECTORY").and_then(|folders| env::split_paths(&folders).next());
    let all = Some(PathBuf::from("/run/farlane"));
    if is_root { [unit, all, own] } else { [unit, own, all] }.into_iter().flatten().collect()
}

fn listen_for_metrics(text: &str, settings: &NodeSettings) -> Result<TcpListener, Failure> {
    let fail = |error| Failure(format!("--metrics {text}: {error}"));
    let addresses: Vec<_> = match text.to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => wrong_usage(format!("--metrics {text}: {error}; expected HOST:PORT")),
    };
    let other = addresses.iter().find(|address| !address.ip().is_loopback());
    if let (Some(other), None) = (other, &settings.credentials) {
        wrong_usage(format!("--metrics {other}: expected a loopback address, or --key"))
    }
    TcpListener::bind(&*addresses).map_err(fail)
}

impl Observed {
    /// Starts to serve, after the sandbox. Until [`Board::serve`] the state is `starting`.
    pub fn start(self, role: &str, settings: &NodeSettings) -> Result<Serving, Failure> {
        let node = NodeDocument {
            limits: Limits::of(settings),
            pid: std::process::id(),
            role: role.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..NodeDocument::default()
        };
        let board = Arc::new(Board::new(node, settings.credentials.clone()));
        if let Some(metrics) = self.metrics {
            let address = metrics.local_addr()?;
            let keys = settings.credentials.clone().filter(|_| !address.ip().is_loopback());
            let scheme = if keys.is_some() { "https" } else { "http" };
            tracing::info!("metrics on {scheme}://{address}/metrics");
            http::on_address(metrics, keys, board.clone())?;
        }
        if let Some(control) = &self.control {
            let socket = control.try_clone()?;
            socket.set_nonblocking(false)?;
            http::on_socket(socket, board.clone())?;
        }
        Ok(Serving { board, _control: self.control })
    }
}
