//! Wireshark without a window: sharkd loads a capture and shows packets in any order. The dissector
//! is a plugin of sharkd.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::Tshark;
use crate::support::tshark::repository;

/// A running sharkd, which ends when its input closes.
pub struct Sharkd {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

/// Copies the files of `from` into `to`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Sharkd {
    /// Loads a capture, and decodes it once in order.
    pub fn start(folder: &Path, capture: &Path) -> Self {
        let home = folder.join("home");
        copy(&repository().join("wireshark"), &home.join(".local/lib/wireshark/plugins"));
        let mut child = Tshark::ready()
            .sharkd()
            .arg("-")
            .env("HOME", &home)
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sharkd");
        let requests = child.stdin.take().unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        let mut sharkd = Self { child, requests, replies };
        sharkd.ask("load", json!({ "file": capture }));
        sharkd.ask("tap", json!({ "tap0": "expert" }));
        sharkd
    }

    fn ask(&mut self, method: &str, params: Value) -> String {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.requests, "{request}").unwrap();
        let mut reply = String::new();
        self.replies.read_line(&mut reply).unwrap();
        assert!(reply.contains(r#""result":"#), "sharkd: {method}: {reply}");
        reply
    }

    /// Returns the number of packets.
    pub fn packets(&mut self) -> u64 {
        let status: Value = serde_json::from_str(&self.ask("status", json!({}))).unwrap();
        status["result"]["frames"].as_u64().unwrap()
    }

    /// Returns the decoded packet with this number, from 1.
    pub fn packet(&mut self, number: u64) -> String {
        self.ask("frame", json!({ "frame": number, "proto": true, "columns": true }))
    }
}

impl Drop for Sharkd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
