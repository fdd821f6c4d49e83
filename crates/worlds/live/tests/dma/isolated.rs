//! A network namespace for a test. If this process may not make one, the test runs again in a
//! user namespace, where it may; if that is not allowed either, it fails with a message.

use live::net::Namespace;
use std::process::Command;

const INSIDE: &str = "FARLANE_TEST_IN_USER_NAMESPACE";

/// Runs the body of the test `name`, with its module, in a network namespace that ends with it.
pub fn isolated(name: &str, body: impl FnOnce(&Namespace)) {
    match Namespace::new() {
        Ok(home) => home.enter(|| body(&home)).unwrap(),
        Err(error) if std::env::var_os(INSIDE).is_none() => {
            println!("{name}: {error}; again in a user namespace");
            let mut again = Command::new("unshare");
            again.args(["--user", "--map-root-user", "--net"]);
            again.arg(std::env::current_exe().unwrap());
            again.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
            let output = again.output().unwrap_or_else(|why| panic!("{error}; unshare: {why}"));
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.contains("1 passed"), "{error}; {text}");
        }
        Err(error) => panic!("{error}"),
    }
}
