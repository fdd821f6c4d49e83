//! Scripts: the lines for each part of a plan.

use super::{node, planned};
use farlane_devices::script::{Options, script};

#[test]
fn script_of_a_bridge_is_the_golden_one() {
    let front = node(&planned("tsn-network", &[]), "front");
    let script =
        script(&front, "tsn-network.toml", &Options { offload: true, ..Options::default() });
    println!("{}", script.text);
    assert_eq!(script.text, include_str!("golden/front.sh"));
}
