//! One listener for several runs.

use super::{Listener, segment, talk};
use crate::support::isolated::isolated;
use linux::{Interface, Namespace};
use serde_json::{Deserializer, Value};

/// The numbers that the kernel gives to the frames of a socket continue from run to run.
#[test]
fn frames_that_go_back_are_stamped_in_every_run() {
    let mut listener = Listener::udp(&["--reflect", "--repeat"]);
    let documents = Deserializer::from_reader(listener.child.stdout.take().unwrap());
    let mut documents = documents.into_iter::<Value>();
    for count in [120, 80, 100] {
        let near = talk(&listener.address, &["--count", &count.to_string(), "--reflect"]);
        let far = documents.next().unwrap().unwrap();
        assert_eq!(near["run"], far["run"]);
        for (end, document) in [("talk", &near), ("listen", &far)] {
            for name in ["sent back to queue", "back, queue to wire"] {
                let whole = &segment(document, name)["whole"];
                // A busy machine loses stamps.
                assert!(whole["n"].as_u64() > Some(count / 2), "{end}: {name}: {whole}");
                assert_eq!(whole["negative"], 0, "{end}: {name}: {whole}");
            }
        }
    }
    listener.interrupt();
    assert!(documents.next().is_none() && listener.child.wait().unwrap().success());
}

#[test]
fn a_listener_ends_well_when_no_further_run_comes() {
    let mut listener = Listener::udp(&["--repeat", "--wait", "1s"]);
    let documents = Deserializer::from_reader(listener.child.stdout.take().unwrap());
    talk(&listener.address, &["--count", "20"]);
    assert_eq!(documents.into_iter::<Value>().map(Result::unwrap).count(), 1);
    assert!(listener.child.wait().unwrap().success());
}

#[test]
fn an_interface_that_goes_down_between_runs_is_an_error() {
    isolated(
        "cli::latency::repeat::an_interface_that_goes_down_between_runs_is_an_error",
        |home| {
            let away = Namespace::new().unwrap();
            home.cable("near", &away, "far").unwrap();
            let mac = away.enter(|| Interface::find("far").unwrap().mac).unwrap();
            let mut listener = away.enter(|| Listener::start("raw:far", &["--repeat"])).unwrap();
            let documents = Deserializer::from_reader(listener.child.stdout.take().unwrap());
            talk(&format!("raw:near,{mac}"), &["--count", "20"]);
            let mut documents = documents.into_iter::<Value>();
            assert!(documents.next().unwrap().is_ok());
            away.run("ip link set far down").unwrap();
            let errors = listener.fails();
            assert!(errors.contains("Network is down"), "{errors}");
        },
    );
}
