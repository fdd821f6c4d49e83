//! What a service manager hears of nodes.

use crate::support::program::{farlane, scratch, text};
use crate::support::{ANY, Node, Process};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

#[test]
fn service_manager_hears_that_nodes_are_ready_and_stop() {
    let folder = scratch("service");
    let device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &[]);
    let far = device.address().to_string();
    let socket = text(&folder.join("notify"));
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let hears = || {
        let mut bytes = [0; 512];
        let length = manager.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let listen = ["--listen", "127.0.0.1:0"];
    let sockets = text(&folder.join("sockets"));
    let drive = [&["device", "--namespace", "ram=1M"], &listen[..], &listen].concat();
    let switch = [&["switch", "--connect", &far], &listen[..]].concat();
    let host = ["host", "--connect", &far, "--vfio-user", &sockets];
    for (arguments, status) in [
        (&drive[..], "STATUS=controller 1: listening on 127.0.0.1:"),
        (&switch, "STATUS=listening on 127.0.0.1:"),
        (&host, "STATUS=offers endpoints: 1\n"),
    ] {
        let mut command = farlane(arguments);
        let mut node = Process::start(command.env("NOTIFY_SOCKET", &socket), arguments[0], &folder);
        let ready = hears();
        assert!(ready.starts_with(status) && ready.ends_with("\nREADY=1\n"), "{ready}");
        assert!(node.interrupt().success());
        assert_eq!(hears(), "STOPPING=1\n");
    }
}
