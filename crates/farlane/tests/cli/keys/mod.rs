//! Links under TLS: rights, refusals, rotation, and hostile peers.

mod hostile;
mod life;
mod refusals;

use crate::support::Process;
use crate::support::program::{node, prints, scratch, text};
use std::fs;
use std::path::PathBuf;

/// A folder with keys and files of peers.
pub struct Keys {
    pub folder: PathBuf,
}

impl Keys {
    /// New keys of these names.
    pub fn new(folder: &str, names: &[&str]) -> Self {
        let keys = Self { folder: scratch(folder) };
        for name in names {
            prints(&["key", "new", &keys.key(name)]);
        }
        keys
    }

    /// The file of a key.
    pub fn key(&self, name: &str) -> String {
        text(&self.folder.join(format!("{name}.key")))
    }

    /// The fingerprint of a key.
    pub fn fingerprint(&self, name: &str) -> String {
        prints(&["key", "show", &self.key(name)]).trim().to_owned()
    }

    /// Replaces the file of peers of `node`. In `lines`, `{NAME}` is a fingerprint.
    pub fn peers(&self, node: &str, lines: &str) -> String {
        let mut lines = lines.to_owned();
        while let Some((_, rest)) = lines.split_once('{') {
            let name = rest.split_once('}').expect("a name in braces").0.to_owned();
            lines = lines.replace(&format!("{{{name}}}"), &self.fingerprint(&name));
        }
        let (path, new) = (self.folder.join(format!("{node}.peers")), self.folder.join("new"));
        fs::write(&new, lines + "\n").unwrap();
        fs::rename(new, &path).unwrap();
        text(&path)
    }

    /// `--key` and `--peers` of a node.
    pub fn options(&self, node: &str) -> [String; 4] {
        let peers = text(&self.folder.join(format!("{node}.peers")));
        ["--key".into(), self.key(node), "--peers".into(), peers]
    }

    /// A device node with the key `name` on any free port, with further options, and its address.
    pub fn device(&self, name: &str, options: &[&str]) -> (Process, String) {
        let always = ["device", "--listen", "127.0.0.1:0", "--namespace", "ram=16M"];
        let node = node(&self.with(name, &[&always[..], options].concat()));
        let address = node.listens();
        (node, address)
    }

    /// `arguments` with the key `name`.
    pub fn with(&self, name: &str, arguments: &[&str]) -> Vec<&'static str> {
        let own = self.options(name);
        let all = arguments.iter().map(|text| (*text).to_owned()).chain(own);
        all.map(|text| &*text.leak()).collect()
    }
}
