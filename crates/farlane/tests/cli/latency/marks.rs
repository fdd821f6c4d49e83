//! Tags, priorities and code points of frames that `farlane latency listen` sends back.

use crate::support::isolated::isolated;
use crate::support::program::{document, node, parsed};
use latency_linux::Port;
use linux::{Interface, Namespace};
use serde_json::{Value, json};

/// Measures between two namespaces; returns the documents of talker and listener.
fn both_ends(away: &Namespace, listen: &[&str], talk: &[&str]) -> [Value; 2] {
    let listen = [&["latency", "listen", "raw:far", "--insecure", "--json"], listen].concat();
    let mut far = away.enter(|| node(&listen)).unwrap();
    far.line("listening on");
    let mac = away.enter(|| Interface::find("far").unwrap().mac).unwrap();
    let to = format!("raw:near,{mac}");
    let talk = [&["latency", "talk", &to, "--json", "--count", "50", "--reflect"], talk].concat();
    let near = document(&talk);
    assert!(far.wait().success());
    [near, parsed(&far.stdout.text())]
}

#[test]
fn raw_frames_come_back_with_their_tag() {
    isolated("cli::latency::marks::raw_frames_come_back_with_their_tag", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near", &away, "far").unwrap();
        let tag = |priority| json!([{ "priority": priority, "vlan": 5, "n": 50 }]);
        let tagged = ["--vlan", "5", "--priority", "3"];
        let [near, far] = both_ends(&away, &["--reflect"], &tagged);
        assert_eq!([&far["tags"], &near["tags"]], [&tag(3), &tag(3)]);
        let setting = &far["settings"][1];
        let shown = ["name", "value", "in_force"].map(|key| &setting[key]);
        assert_eq!(json!(shown), json!(["priority of the tag", "3", true]));
        let [near, far] = both_ends(&away, &["--reflect", "--priority", "6"], &tagged);
        assert_eq!([&far["tags"], &near["tags"]], [&tag(3), &tag(6)]);
        let [near, far] = both_ends(&away, &["--reflect"], &[]);
        assert_eq!((&far["tags"], &near["tags"]), (&json!([]), &json!([])));
    });
}

#[test]
fn datagrams_come_back_with_the_code_point_of_the_listener() {
    let name = "cli::latency::marks::datagrams_come_back_with_the_code_point_of_the_listener";
    isolated(name, |home| {
        home.run("ip link set lo up").unwrap();
        let tap = Port::ethernet(&Interface::find("lo").unwrap(), 0x0800).unwrap();
        let marks = ["--reflect", "--json", "--dscp", "46", "--priority", "5"];
        let mut far = node(&[&["latency", "listen", "127.0.0.1:0"], &marks[..]].concat());
        let to = far.listens();
        document(&["latency", "talk", &to, "--json", "--count", "50", "--reflect"]);
        assert!(far.wait().success());
        let settings = &parsed(&far.stdout.text())["settings"];
        let shown = |at: usize| ["name", "value", "in_force"].map(|key| settings[at][key].clone());
        assert_eq!(
            json!([shown(0), shown(1)]),
            json!([["DSCP", "46", true], ["priority", "5", true]])
        );
        let mut octets = [Vec::new(), Vec::new()];
        let mut buffer = [0; 2048];
        while let Some(received) = tap.receive(&mut buffer).unwrap() {
            let packet = &buffer[tap.payload_at()..][..received.bytes];
            // IPv4 without options (RFC 791, section 3.1), and UDP's source port (RFC 768).
            let port = u16::from_be_bytes([packet[20], packet[21]]);
            let is_back = to.ends_with(&format!(":{port}"));
            octets[usize::from(is_back)].push(packet[1]);
        }
        let [there, back] = octets;
        assert!(there.len() > 50 && there.iter().all(|octet| *octet == 0), "{there:?}");
        // DSCP 46 is in the upper six bits (RFC 2474, section 3).
        assert!(back.len() >= 50 && back.iter().all(|octet| *octet == 46 << 2), "{back:?}");
    });
}
