//! QEMU's machine protocol (QMP), as far as the tests need it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Maximum time for an answer of QEMU.
const LIMIT: Duration = Duration::from_secs(30);

/// A connection after the greeting, ready for commands.
pub struct Qmp {
    stream: BufReader<UnixStream>,
}

impl Qmp {
    /// Exchanges greetings with QEMU.
    pub fn greet(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut qmp = Self { stream: BufReader::new(stream) };
        let greeting = qmp.receive();
        assert!(greeting.get("QMP").is_some(), "QMP greeting: {greeting}");
        qmp.execute("qmp_capabilities", json!({})).unwrap();
        qmp
    }

    /// Runs a command; returns its result. The error is QEMU's description.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        let request = json!({"execute": command, "arguments": arguments});
        writeln!(self.stream.get_mut(), "{request}").expect("QMP request");
        loop {
            let reply = self.receive();
            if let Some(value) = reply.get("return") {
                return Ok(value.clone());
            }
            if let Some(error) = reply.get("error") {
                return Err(error["desc"].as_str().unwrap_or("no description").into());
            }
            // Other messages are events, which no test needs.
        }
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        assert!(matches!(read, Ok(1..)), "QMP: no message, of {LIMIT:?} waited for: {read:?}");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("QMP: {error}: {line}"))
    }
}
