//! The socket that a VMM connects to: `DIR/N/cntrl`. SPDK's initiator expects the name `cntrl` in
//! one directory per endpoint.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest path of a Unix socket on Linux in bytes (`sockaddr_un`, without the NUL).
const MAX_PATH: usize = 107;

/// Why an endpoint cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens on the socket with this path.
    #[error("{}: another server is listening here", .0.display())]
    InUse(PathBuf),
    /// The path exists, but is not a socket.
    #[error("{}: exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The path is longer than a Unix socket address allows.
    #[error("{}: socket path is longer than {MAX_PATH} bytes", .0.display())]
    TooLong(PathBuf),
    /// A call of the operating system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the call.
        source: io::Error,
    },
    /// The eventfd with which workers wake the event loop could not be created.
    #[error("event descriptor: {0}")]
    Workers(Errno),
    /// The memory for the shared doorbells could not be created.
    #[error("cannot create the memory for the shared doorbells: {0}")]
    Doorbells(Errno),
}

/// A listening Unix socket. The file of the socket is removed on drop.
#[derive(Debug)]
pub struct Listener {
    /// The listening socket, readable when a client waits.
    pub socket: UnixListener,
    /// The path that clients connect to.
    pub path: PathBuf,
}

impl Listener {
    /// Listens on `directory/number/cntrl`; otherwise as [`at`](Self::at).
    pub(crate) fn bind(directory: &Path, number: usize) -> Result<Self, BindError> {
        Self::at(directory.join(number.to_string()).join("cntrl"))
    }

    /// Listens without blocking on `path`. Creates missing folders, and removes a socket whose server
    /// no longer runs.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn at(path: PathBuf) -> Result<Self, BindError> {
        let fail = |source| BindError::Io { path: path.clone(), source };
        if path.as_os_str().len() > MAX_PATH {
            return Err(BindError::TooLong(path));
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(fail)?;
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
            Ok(there) if !there.file_type().is_socket() => {
                return Err(BindError::NotASocket(path));
            }
            Ok(_) => match UnixStream::connect(&path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(&path).map_err(fail)?;
                }
                Err(error) => return Err(fail(error)),
                Ok(_) => return Err(BindError::InUse(path)),
            },
        }
        let socket = UnixListener::bind(&path).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        Ok(Self { socket, path })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another descriptor of the socket.
    ///
    /// # Errors
    /// As `dup(2)`.
    pub fn try_clone(&self) -> io::Result<UnixListener> {
        self.socket.try_clone()
    }

    /// Accepts a waiting client; `None` if the client has already disconnected or the process has
    /// no free descriptors.
    pub(crate) fn accept(&self) -> Option<OwnedFd> {
        self.socket.accept().ok().map(|(stream, _)| stream.into())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
