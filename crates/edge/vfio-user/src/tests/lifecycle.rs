//! Tests of the connection and disconnection of clients, and of the start and stop of servers.

use super::*;

#[test]
fn the_next_client_finds_a_clean_state() {
    let mut testbed = Testbed::new();
    let (ram, event) = (Shared::new("ram", 0, 0x1000).unwrap(), eventfd());
    let map = DmaMap { flags: 3, offset: 0, address: 0x1000, size: 0x1000 };
    assert_eq!(testbed.map(map, Some(&ram.file)), None);
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 1), &[event.as_fd()]), None);
    testbed.write(7, 0x10, &[0, 0, 0xbf, 0xfe]);
    testbed.take_actions();
    let [stale] = testbed.ask(0, 4)[..] else { panic!() };

    testbed.client = Client::connect(testbed.server.path());
    // The client sends two messages before the server runs.
    let version = message(1, 1, &[0, 0, 0, 0], false);
    let read = message(2, 9, &access(0, 8, 4, &[]), false);
    testbed.send(&[version, read].concat(), &[]);
    let [Action::ClientGone { token }] = testbed.take_actions()[..] else { panic!() };
    assert_eq!(testbed.client.receive().header.id, 1);
    // The command of the new client waits until the cleanup after the old client has ended.
    assert!(testbed.client.is_quiet());
    testbed.server.reply(testbed.now, stale, Ok(&[1; 4]));
    assert_eq!(testbed.take_actions(), []);
    testbed.answer = true;
    testbed.server.reply(testbed.now, token, Ok(&[]));
    testbed.pump();
    assert_eq!(testbed.client.receive().payload[16..], [8, 9, 10, 11]);
    assert_eq!(testbed.read(7, 0x10, 4), [4, 0, 0, 0]);
    assert_eq!(testbed.server.session.memory.ranges(), 0);
    let fault = Access::Failed(DmaError::Fault);
    assert_eq!(testbed.server.dma_read(testbed.now, 0x1000, 4), fault);
    testbed.server.session.signal(0);
    assert_eq!(rung(&event), 0);
}

#[test]
fn a_client_without_a_version_leaves_no_trace() {
    let mut testbed = Testbed::silent(plain_endpoint());
    for _ in 0..3 {
        testbed.client = Client::connect(testbed.server.path());
        testbed.pump();
    }
    assert!(testbed.take_actions().is_empty() && !testbed.server.session.in_use());
    testbed.greet(&None);
    assert!(testbed.server.session.in_use());
}

#[test]
fn a_second_client_is_turned_away() {
    let mut testbed = Testbed::new();
    let second = Client::connect(testbed.server.path());
    testbed.pump();
    assert!(second.is_closed());
    assert_eq!(testbed.server.session.counters.turned_away, 1);
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn a_client_that_leaves_while_it_is_not_read_is_noticed() {
    let mut testbed = Testbed::new();
    testbed.answer = false;
    for _ in 0..100 {
        testbed.client.send(&message(1, 9, &access(0, 0, 4, &[]), false), &[]);
    }
    testbed.pump();
    testbed.client = Client::connect(testbed.server.path());
    testbed.take_actions();
    testbed.answer = true;
    testbed.pump();
    assert!(matches!(testbed.take_actions()[..], [Action::ClientGone { .. }]));
    testbed.greet(&None);
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

#[test]
fn sockets_of_dead_servers_are_replaced_and_of_live_ones_respected() {
    let folder = Folder::new();
    let bind = || Server::bind(&folder, 3, plain_endpoint());
    let server = bind().unwrap();
    let path = server.path().to_owned();
    let error = bind().unwrap_err();
    assert!(matches!(error, BindError::InUse(_)));
    assert!(error.to_string().contains("another server is listening"), "{error}");
    drop(server);
    assert!(!path.exists());
    // A socket without a server, as after a crash of the server.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(bind().unwrap());
    std::fs::write(&path, b"mine").unwrap();
    assert!(matches!(bind(), Err(BindError::NotASocket(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    let long = folder.join("x".repeat(120));
    let error = Server::bind(&long, 0, plain_endpoint()).unwrap_err();
    assert!(matches!(error, BindError::TooLong(_)));
}

#[test]
fn one_descriptor_is_readable_when_there_is_something_to_do() {
    let folder = Folder::new();
    let mut server = Server::bind(&folder, 0, plain_endpoint()).unwrap();
    let ready = |server: &Server| is_readable(server, 0);
    assert!(!ready(&server));
    let client = Client::connect(server.path());
    assert!(ready(&server));
    server.service(Instant::ZERO);
    assert!(!ready(&server));
    client.send(&message(0, 1, &[0; 4], false), &[]);
    assert!(ready(&server));
    server.service(Instant::ZERO);
    assert!(!ready(&server));
    drop(client);
    assert!(ready(&server));
    server.service(Instant::ZERO);
    assert!(!server.connected() && server.take_closed().is_some());
    // The worker's thread wakes the event loop when it has closed the socket, and when the thread
    // ends.
    for wakes in 0.. {
        if !ready(&server) {
            break;
        }
        assert!(wakes < 2, "nothing to do, and ready all the same");
        server.service(Instant::ZERO);
    }
}
