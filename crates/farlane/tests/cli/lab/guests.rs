//! A lab with a guest behind an interface.

use super::{alone, iperf3, lab, nothing_is_left, sh};
use crate::cli::latency::segment;
use crate::support::program::{farlane, node, one_line, parsed, scratch};
use linux::{Interface, Namespace};

/// Creates the interface `g0`. Returns the namespace of the interface at its other end, and the MAC
/// address of that interface.
fn cable() -> (Namespace, String) {
    let (home, away) = (Namespace::current().unwrap(), Namespace::new().unwrap());
    home.cable("g0", &away, "g1").unwrap();
    let mac = away.enter(|| Interface::find("g1").unwrap().mac).unwrap();
    (away, mac.to_string())
}

/// Returns whether the interface is back in this namespace, with its own name and up.
fn is_home() -> bool {
    let link = sh("ip -o link show g0");
    link.contains(": g0@") && link.contains(",UP")
}

#[test]
fn runs_lead_to_a_guest_whose_interface_comes_back() {
    alone("cli::lab::guests::runs_lead_to_a_guest_whose_interface_comes_back", || {
        let (away, mac) = cable();
        let listen =
            ["latency", "listen", "raw:g1", "--reflect", "--insecure", "--repeat", "--json"];
        let mut guest = away.enter(|| node(&listen)).unwrap();
        guest.line("listening on");
        let to = format!("g0,{mac}");
        let path = iperf3(&scratch("lab-guest-load"), "exec sleep 5201");
        let options = ["--guest", &to, "--count", "60", "--json", "--stress", "2"];
        let mut lab = farlane(&[&["latency", "lab"], &options[..]].concat());
        let output = lab.env("PATH", path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let server = "ip address add 192.0.2.2/24 dev eth0; iperf3 -s -p 5201 -D; farlane";
        assert!(errors.contains("waiting for the guest"), "{errors}");
        assert!(errors.contains(server), "what the guest is to run: {errors}");
        let document = parsed(std::str::from_utf8(&output.stdout).unwrap());
        let bridge = &document["bridges"][0];
        assert_eq!(bridge["outcome"], "passes");
        let runs = bridge["runs"].as_array().unwrap();
        let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["idle", "loaded"]);
        for run in runs {
            assert_eq!(run["talk"]["counts"]["received"], 60, "{}", run["talk"]["counts"]);
            assert_eq!(run["talk"]["tags"][0]["n"], 60, "{}", run["talk"]["tags"]);
            for name in ["sent back to queue", "back, queue to wire"] {
                let whole = &segment(&run["talk"], name)["whole"];
                assert!(whole["n"].as_u64() > Some(30), "one listener, run after run: {whole}");
            }
            assert_eq!(run["twin"]["simulated"]["counts"]["received"], 60);
            assert!(run["listen"].is_null() && run["received_bits_per_second"].is_null());
        }
        assert!(is_home(), "g0");
        nothing_is_left_but(&mut guest);
    });
}

/// Checks that only the guest is left, which the test has started.
fn nothing_is_left_but(guest: &mut crate::support::Process) {
    assert!(guest.is_running());
    guest.kill();
    nothing_is_left();
}

#[test]
fn silent_guest_is_an_error() {
    alone("cli::lab::guests::silent_guest_is_an_error", || {
        let (_away, mac) = cable();
        let output = lab(&["--guest", &format!("g0,{mac}"), "--guest-wait", "1ms"]);
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.ends_with("farlane: linux: failed: no guest answered\n"), "{errors}");
        assert!(is_home(), "g0");
        nothing_is_left();
        let tap = lab(&["--bridge", "macvtap", "--guest", &format!("g0,{mac}")]);
        assert!(one_line(&tap).contains("a macvtap device is the guest's own: --guest tap,MAC"));
    });
}
