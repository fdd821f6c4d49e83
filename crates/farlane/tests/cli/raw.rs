//! Nodes over raw Ethernet, in network namespaces that the tests create.

use crate::support::isolated::isolated;
use crate::support::program::{fails, is_refused, node, one_line, run};
use live::net::Namespace;
use std::process::Output;

const LISTEN: [&str; 6] = ["device", "--listen", "raw:far0", "--insecure", "--namespace", "ram=1M"];

fn ping(address: &str) -> Output {
    run(&["ping", address, "--insecure", "--count", "10", "--json"])
}

#[test]
fn killed_node_is_detected_and_replacement_connects() {
    isolated("cli::raw::killed_node_is_detected_and_replacement_connects", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let start = || away.enter(|| node(&LISTEN)).unwrap();
        let first = start();
        let log = first.line("Max_Payload_Size");
        assert_eq!(
            log,
            "raw Ethernet on far0 at an MTU of 1500 carries payloads of at most 1024 bytes: using \
             Max_Payload_Size 1024"
        );
        let address = first.listens().replace("raw:far0,", "raw:near0,");
        let output = ping(&address);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for what in ["link", "config_read"] {
            assert_eq!(document[what]["n"], 10, "{document}");
        }
        let second = away.enter(|| run(&LISTEN)).unwrap();
        let log = String::from_utf8_lossy(&second.stderr).into_owned();
        assert!(log.contains("cannot listen on raw:far0: Address already in use"), "{log}");
        // After SIGKILL, neither the node nor the kernel closes the link.
        drop(first);
        let output = ping(&address);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(one_line(&output), format!("farlane: {address}: no answer"));
        let _node = start();
        let found = (0..50).any(|_| ping(&address).status.success());
        assert!(found, "the new node is not found");
    });
}

#[test]
fn mistakes_are_named() {
    isolated("cli::raw::mistakes_are_named", |home| {
        home.run("ip link set lo up").unwrap();
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let fails = |arguments: &[&str], says: &str| fails(arguments, &[says]);
        let device = |at: &'static str| ["device", "--listen", at, "--namespace", "ram=1M"];
        fails(&device("raw:far0"), "no interface 'far0'; available are ");
        let refused = |arguments: &[&str], says: &str| is_refused(arguments, &[says]);
        refused(&device("raw:near0"), "raw:near0 is not loopback");
        refused(&["ping", "raw:lo"], "invalid address 'raw:lo': expected raw:INTERFACE,MAC");
        refused(&["ping", "raw:near0,02:00:5e:10:00:01"], "add --insecure");
        refused(&["ping", "raw:lo,02:00:5e"], "invalid Ethernet address '02:00:5e'");
        refused(&["ping", "raw:lo,ff:ff:ff:ff:ff:ff"], "is a group address");
    });
}
