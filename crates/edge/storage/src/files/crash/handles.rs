//! Open files and folders of a disk.

use super::disk::{Disk, Node, Step, apply};
use crate::files::{Access, File, Folder};
use std::fmt::Debug;
use std::io::{self, ErrorKind};

/// An open file.
#[derive(Debug)]
struct CrashFile {
    disk: Disk,
    node: usize,
    writable: bool,
}

impl CrashFile {
    /// Executes a step that changes the content, or fails without a change.
    fn change(&self, change: impl FnOnce(&mut super::content::Content)) -> io::Result<()> {
        let mut state = self.disk.state();
        if !self.writable {
            return Err(ErrorKind::PermissionDenied.into());
        }
        state.whole_step()?;
        change(state.content(self.node));
        Ok(())
    }
}

impl File for CrashFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let content = state.content(self.node);
        if offset + bytes.len() as u64 > content.length() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        content.read(bytes, offset);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        if !self.writable {
            return Err(ErrorKind::PermissionDenied.into());
        }
        match state.step()? {
            Step::Done => state.content(self.node).write(bytes, offset),
            Step::Fails(error) => {
                state.content(self.node).write(&bytes[..bytes.len() / 2], offset);
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_durably_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        let mut state = self.disk.state();
        let step = state.step()?;
        state.content(self.node).sync_range(offset, bytes.len() as u64, matches!(step, Step::Done));
        match step {
            Step::Done => Ok(()),
            Step::Fails(error) => Err(error),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().content(self.node).length())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(|content| content.set_length(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let step = state.step()?;
        state.content(self.node).sync(matches!(step, Step::Done));
        match step {
            Step::Done => Ok(()),
            Step::Fails(error) => Err(error),
        }
    }

    fn zero_range(&self, offset: u64, length: u64) -> io::Result<()> {
        self.change(|content| content.zero(offset, length))
    }

    fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        self.zero_range(offset, length)
    }

    fn free_space(&self) -> Option<u64> {
        None
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.change(|content| content.grow(offset + length))
    }
}

/// An open folder.
#[derive(Debug)]
pub struct CrashFolder {
    disk: Disk,
    node: usize,
}

/// A lock, dropped with the value.
#[derive(Debug)]
struct Lock {
    disk: Disk,
    node: usize,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let locks = &mut self.disk.state().locks;
        match locks.remove(&self.node).flatten() {
            None | Some(1) => {}
            Some(sharing) => drop(locks.insert(self.node, Some(sharing - 1))),
        }
    }
}

impl CrashFolder {
    pub(super) fn new(disk: Disk, node: usize) -> Self {
        Self { disk, node }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        match &self.disk.state().nodes[self.node] {
            Node::Folder { current, .. } => {
                current.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
            }
            Node::File(_) => unreachable!("only folders are opened as folders"),
        }
    }

    /// Executes a step that changes entries.
    fn change(&self, changes: &[(&str, Option<usize>)]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.whole_step()?;
        if let Node::Folder { changes: unsynced, current, .. } = &mut state.nodes[self.node] {
            let change = changes.iter().map(|(name, node)| ((*name).to_owned(), *node)).collect();
            apply(current, &change);
            unsynced.push(change);
        }
        Ok(())
    }

    fn is_file(&self, node: usize) -> io::Result<()> {
        match self.disk.state().nodes[node] {
            Node::File(_) => Ok(()),
            Node::Folder { .. } => Err(ErrorKind::IsADirectory.into()),
        }
    }

    fn open_file(&self, name: &str, access: Access) -> io::Result<CrashFile> {
        let node = match (self.find(name), access) {
            (Ok(_), Access::CreateNew) => return Err(ErrorKind::AlreadyExists.into()),
            (Err(_), Access::Create | Access::CreateNew) => {
                let node = self.disk.state().add(Node::File(Default::default()));
                self.change(&[(name, Some(node))])?;
                node
            }
            (found, _) => found?,
        };
        self.is_file(node)?;
        Ok(CrashFile { disk: self.disk.clone(), node, writable: access != Access::Read })
    }
}

impl Folder for CrashFolder {
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(self.open_file(name, access)?))
    }

    fn lock(&self, name: &str, shared: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let access = if shared { Access::Read } else { Access::Create };
        let node = self.open_file(name, access)?.node;
        let locks = &mut self.disk.state().locks;
        let held = match (locks.get(&node), shared) {
            (None, true) => Some(1),
            (None, false) => None,
            (Some(Some(sharing)), true) => Some(sharing + 1),
            _ => return Ok(None),
        };
        locks.insert(node, held);
        Ok(Some(Box::new(Lock { disk: self.disk.clone(), node })))
    }

    fn folder(&self, name: &str) -> io::Result<Box<dyn Folder>> {
        let node = self.find(name)?;
        match self.is_file(node) {
            Ok(()) => Err(ErrorKind::NotADirectory.into()),
            Err(_) => Ok(Box::new(Self::new(self.disk.clone(), node))),
        }
    }

    fn create_folder(&self, name: &str) -> io::Result<()> {
        if self.find(name).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let node = self.disk.state().add(Node::folder());
        self.change(&[(name, Some(node))])
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        match self.folder(name)?.list()?.is_empty() {
            true => self.change(&[(name, None)]),
            false => Err(ErrorKind::DirectoryNotEmpty.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        match &self.disk.state().nodes[self.node] {
            Node::Folder { current, .. } => Ok(current.keys().cloned().collect()),
            Node::File(_) => unreachable!("only folders are opened as folders"),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let node = self.find(from)?;
        self.change(&[(from, None), (to, Some(node))])
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.is_file(self.find(name)?)?;
        self.change(&[(name, None)])
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        // After a failed sync of a folder, the next sync makes the changes durable, because file
        // systems write them to a journal.
        state.whole_step()?;
        if let Node::Folder { durable, changes, current } = &mut state.nodes[self.node] {
            durable.clone_from(current);
            changes.clear();
        }
        Ok(())
    }
}
