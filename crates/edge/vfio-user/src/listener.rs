//! The socket that a VMM connects to: `DIR/N/cntrl`. SPDK's initiator expects the name `cntrl` in
//! one directory per endpoint.

use rustix::fd::OwnedFd;
use rustix::fs::{self, Gid, Mode};
use rustix::io::Errno;
use rustix::process::{getegid, umask};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
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
    /// The clients that may connect to the sockets cannot search the folder.
    #[error("{}: the clients of the sockets cannot search the folder; allow it by chmod g+x or o+x", .0.display())]
    Closed(PathBuf),
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

/// A folder of sockets, and who may connect to them.
#[derive(Clone, Debug, Default)]
pub struct SocketFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Group of the sockets, which must be a group of this process; `None`: its effective group.
    pub group: Option<u32>,
    /// Mode of the sockets, such as 0o660; `None`: by umask(2).
    pub mode: Option<u32>,
}

impl From<&Path> for SocketFolder {
    fn from(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

impl SocketFolder {
    /// Creates the folder. Clients can search a created folder if they may connect to its sockets;
    /// the mode of an existing folder stays.
    ///
    /// # Errors
    /// See [`BindError`]; among others, if clients cannot search an existing folder.
    pub fn create(&self) -> Result<(), BindError> {
        let fail = |source| BindError::Io { path: self.path.clone(), source };
        let Ok(found) = self.path.metadata() else {
            std::fs::create_dir_all(&self.path).map_err(fail)?;
            return self.open_to_clients(&self.path);
        };
        let (Some(mode), by_group) = (self.mode, self.group == Some(found.gid())) else {
            return Ok(());
        };
        // For members of the folder's group, only the bits of the group count.
        let needed = if by_group { 0o010 } else { 0o001 };
        match mode & 0o022 == 0 || found.mode() & needed != 0 {
            true => Ok(()),
            false => Err(BindError::Closed(self.path.clone())),
        }
    }

    /// Gives a folder to the group and lets those search it who may connect to sockets. Sockets in it
    /// get its group (S_ISGID, inode(7)): a sandboxed process may change no owner by path.
    fn open_to_clients(&self, folder: &Path) -> Result<(), BindError> {
        let fail = |errno: Errno| BindError::Io { path: folder.to_owned(), source: errno.into() };
        let Some(mode) = self.mode else { return Ok(()) };
        let opened = File::open(folder)
            .map_err(|source| BindError::Io { path: folder.to_owned(), source })?;
        if let Some(group) = self.group {
            fs::fchown(&opened, None, Some(Gid::from_raw(group))).map_err(fail)?;
        }
        let search = (mode & 0o222) >> 1;
        // Service managers may forbid this bit to a process that can do without it.
        let inherit = self.group.is_some_and(|group| group != getegid().as_raw());
        let inherit = if inherit { 0o2000 } else { 0 };
        fs::fchmod(&opened, Mode::from_raw_mode(inherit | 0o700 | search)).map_err(fail)
    }
}

/// A socket that listens on `path`. It has its mode from the start.
fn listen(path: &Path, mode: Option<u32>) -> io::Result<UnixListener> {
    let Some(mode) = mode else { return UnixListener::bind(path) };
    // The mask is the whole process's, for the time of one call.
    let before = umask(Mode::from_raw_mode(!mode & 0o777));
    let socket = UnixListener::bind(path);
    umask(before);
    socket
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
    /// Listens on `number/cntrl` in the folder; otherwise as [`at`](Self::at).
    pub(crate) fn bind(sockets: &SocketFolder, number: usize) -> Result<Self, BindError> {
        let folder = sockets.path.join(number.to_string());
        let path = folder.join("cntrl");
        check_length(&path)?;
        let fail = |source| BindError::Io { path: path.clone(), source };
        std::fs::create_dir_all(&folder).map_err(fail)?;
        sockets.open_to_clients(&folder)?;
        Self::at(path, sockets.mode)
    }

    /// Listens without blocking on `path`, with a socket of this mode; `None`: by umask(2). Creates
    /// missing folders, and removes a socket whose server no longer runs.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn at(path: PathBuf, mode: Option<u32>) -> Result<Self, BindError> {
        let fail = |source| BindError::Io { path: path.clone(), source };
        check_length(&path)?;
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
        let socket = listen(&path, mode).map_err(fail)?;
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

fn check_length(path: &Path) -> Result<(), BindError> {
    match path.as_os_str().len() {
        0..=MAX_PATH => Ok(()),
        _ => Err(BindError::TooLong(path.to_owned())),
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
