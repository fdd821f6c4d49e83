//! `farlane latency redirect` between three network namespaces that the tests create.

use crate::support::isolated::isolated;
use crate::support::program::{fails, is_refused, is_wrong_usage, node, parsed, succeeds};
use crate::support::{Process, cannot};
use latency_linux::redirect::{Attached, Mode};
use linux::{Interface, Namespace};
use rustix::process::Signal;
use serde_json::Value;

/// Three namespaces: the talker's with `near`, the listener's with `far`, and the one between.
struct Three {
    between: Namespace,
    listener: Namespace,
}

impl Three {
    /// Connects the namespaces with cables. Returns `None` if this process may not load XDP
    /// programs, as in a user namespace.
    fn new(test: &str, talker: &Namespace) -> Option<Self> {
        let three =
            Self { between: Namespace::new().unwrap(), listener: Namespace::new().unwrap() };
        talker.cable("near", &three.between, "in").unwrap();
        three.between.cable("out", &three.listener, "far").unwrap();
        match Attached::pass("near", Mode::Generic) {
            Err(why) if why.contains("CAP_BPF") => {
                cannot(test, why);
                None
            }
            tried => tried.map(|_| three).map_err(|why| panic!("{why}")).ok(),
        }
    }

    fn redirect(&self, options: &[&str]) -> Process {
        let arguments = [&["latency", "redirect", "in", "out"], options].concat();
        let process = self.between.enter(|| node(&arguments)).unwrap();
        process.line("redirecting between in and out");
        process
    }

    /// Returns whether the kernel has a program on at least one of both interfaces.
    fn is_redirected(&self) -> bool {
        self.between.run("ip link show").unwrap().contains("xdp")
    }

    /// Sends 100 frames in VLAN 5. Returns the numbers of frames that reach the listener, and that
    /// return to the talker.
    fn received(&self) -> [Value; 2] {
        let address = self.listener.enter(|| Interface::find("far").unwrap().mac).unwrap();
        let listen = ["latency", "listen", "raw:far", "--reflect", "--insecure", "--json"];
        let mut listener = self.listener.enter(|| node(&listen)).unwrap();
        listener.line("listening on");
        let to = format!("raw:near,{address}");
        let talk = ["latency", "talk", &to, "--reflect", "--json", "--vlan", "5", "--count", "100"];
        let near = parsed(&succeeds(&talk));
        assert!(listener.wait().success());
        let far = parsed(&listener.stdout.text());
        assert_eq!(far["tags"][0]["vlan"], 5);
        [&far, &near].map(|document| document["counts"]["received"].clone())
    }
}

#[test]
fn frames_cross_both_ways_and_a_killed_redirect_leaves_nothing() {
    let name = "cli::redirect::frames_cross_both_ways_and_a_killed_redirect_leaves_nothing";
    isolated(name, |talker| {
        let Some(three) = Three::new(name, talker) else { return };
        let mut generic = three.redirect(&["--mode", "generic"]);
        assert_eq!(three.received(), [100, 100]);
        generic.kill();
        assert!(!three.is_redirected());
        // A veth drops redirected frames unless its peer has an XDP program or GRO.
        let refused = |names: &str| {
            let says = format!("the driver drops what native XDP redirects to {names}: for a veth");
            let redirect = ["latency", "redirect", "in", "out"];
            three.between.enter(|| fails(&redirect, &[&says, "gro on", "--pass PEER"])).unwrap();
            assert!(!three.is_redirected());
        };
        refused("in and out");
        let pass = |on: &str| {
            let process = node(&["latency", "redirect", "--pass", on]);
            process.line(&format!("passing on {on} (native)"));
            process
        };
        let _near = pass("near");
        refused("out");
        let _far = three.listener.enter(|| pass("far")).unwrap();
        let mut native = three.redirect(&[]);
        assert!(three.is_redirected());
        assert_eq!(three.received(), [100, 100]);
        native.signal(Signal::TERM);
        assert!(native.wait().success());
        assert!(!three.is_redirected());
    });
}

#[test]
fn mistakes_are_named() {
    let name = "cli::redirect::mistakes_are_named";
    isolated(name, |talker| {
        talker.run("ip link set lo up").unwrap();
        let Some(three) = Three::new(name, talker) else { return };
        let redirect = |options: &[&'static str]| [&["latency", "redirect"], options].concat();
        fails(&redirect(&["near", "nosuch0"]), &["no interface 'nosuch0'; available are", "near"]);
        is_refused(&redirect(&["near", "near"]), &["'near' is given twice"]);
        fails(
            &redirect(&["lo", "near"]),
            &["native XDP cannot be attached to lo", "--mode generic"],
        );
        is_wrong_usage(&redirect(&["near"]));
        let wrong = is_wrong_usage(&redirect(&["near", "near", "--mode", "skb"]));
        assert!(wrong.contains("native or generic"), "{wrong}");
        let _first = three.redirect(&["--mode", "generic"]);
        let again = redirect(&["in", "out", "--mode", "generic"]);
        let says = "generic XDP cannot be attached to in: it already has an XDP program";
        three.between.enter(|| fails(&again, &[says])).unwrap();
    });
}
