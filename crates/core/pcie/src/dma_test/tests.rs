//! The DMA test function below a root complex, controlled by its driver.

use super::*;
use crate::enumerate;
use crate::memory::Ram;
use crate::root::{self, HostOutput};
use crate::testing::Testbed;
use driver::Failed;
use wire::Bdf;

const RAM: u64 = 0x10_0000;

impl Testbed<DmaTest> {
    /// Enumerates the function and enables MSI-X if `msix`. Returns the address of BAR 0 too.
    fn ready(msix: bool) -> (Self, u64) {
        let function = DmaTest::new(Settings { max_payload: 256, ..Settings::default() });
        let ram = Ram::new(RAM, 0x10_0000);
        let mut testbed = Self::new(root::Settings::default(), function, Some(ram));
        let bus = testbed.bus.clone();
        let bar = testbed.run(async move {
            let found = enumerate::enumerate(bus.clone(), enumerate::Settings::default()).await;
            let hierarchy = found.unwrap();
            let node = hierarchy.endpoints()[0];
            if msix {
                enumerate::enable(&bus, node, [(0, 0x55)]).await;
            } else {
                bus.config_write(node.bdf, 4, 2, 6).await;
            }
            node.bar(0).unwrap().address
        });
        (testbed, bar)
    }

    fn ram(&mut self) -> &mut Ram {
        self.ram.as_mut().expect("it has some")
    }
}

const INTERRUPT: root::Output =
    root::Output::Host(HostOutput::Interrupt { requester: Bdf::new(1, 0, 0), data: 0x55 });

#[test]
fn copies_odd_ranges_and_signals() {
    let (mut testbed, bar) = Testbed::ready(true);
    let source: Vec<u8> = (0..100_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    testbed.ram().get_mut(RAM + 3, source.len()).unwrap().copy_from_slice(&source);
    let bus = testbed.bus.clone();
    let to = RAM + 0x8_0001;
    let ended =
        testbed.run(async move { driver::copy(&bus, bar, RAM + 3, to, source.len() as u32).await });
    assert_eq!(ended, Ok(()));
    let from = testbed.ram().get(RAM + 3, 100_000).map(<[u8]>::to_vec);
    assert_eq!(from.as_deref(), testbed.ram().get(to, 100_000));
    assert_eq!(testbed.ram().get(RAM + 0x8_0000, 1), Some(&[0][..]));
    assert_eq!(testbed.ram().get(RAM + 0x8_0001 + 100_000, 1), Some(&[0][..]));
    assert_eq!(testbed.outputs, [INTERRUPT]);
    assert_eq!(testbed.root.errors().total(), 0);
}

#[test]
fn fills_and_holds_bytes_behind_its_bar() {
    let (mut testbed, bar) = Testbed::ready(true);
    let bus = testbed.bus.clone();
    let (magic, word, ended) = testbed.run(async move {
        bus.write(bar + register::RAM + 0x2ff8, 8, 0x0123_4567_89ab_cdef);
        let word = bus.read(bar + register::RAM + 0x2ffc, 4).await;
        let ended = driver::fill(&bus, bar, 0x0403_0201, RAM + 1, 6).await;
        (driver::is_present(&bus, bar).await, word, ended)
    });
    assert!(magic);
    assert_eq!(word, 0x0123_4567);
    assert_eq!(ended, Ok(()));
    assert_eq!(testbed.ram().get(RAM, 8), Some(&[0, 1, 2, 3, 4, 1, 2, 0][..]));
}

#[test]
fn failed_jobs_report_their_cause() {
    let (mut testbed, bar) = Testbed::ready(true);
    let bus = testbed.bus.clone();
    testbed.run(async move {
        assert_eq!(driver::copy(&bus, bar, 0x4000_0000, RAM, 64).await, Err(Failed(Some(1))));
        assert_eq!(driver::copy(&bus, bar, RAM, RAM, 0).await, Err(Failed(Some(6))));
        assert_eq!(driver::fill(&bus, bar, 1, RAM, MAX_LENGTH + 1).await, Err(Failed(Some(6))));
        assert_eq!(bus.read(bar + register::COUNT, 4).await, 3);
        enumerate::enable_bus_master(&bus, Bdf::new(1, 0, 0), false).await;
        assert_eq!(driver::fill(&bus, bar, 1, RAM, 64).await, Err(Failed(Some(5))));
        assert_eq!(driver::copy(&bus, bar, RAM, RAM, 64).await, Err(Failed(Some(5))));
    });
    assert_eq!(testbed.outputs, vec![INTERRUPT; 3]);
}

#[test]
fn without_msix_the_wire_stays_until_acknowledged() {
    let (mut testbed, bar) = Testbed::ready(false);
    let bus = testbed.bus.clone();
    testbed.run(async move { driver::fill(&bus, bar, 1, RAM, 64).await }).unwrap();
    let wire = |level| root::Output::Host(HostOutput::Intx { wire: 0, level });
    assert_eq!(testbed.outputs, [wire(true)]);
    testbed.bus.write(bar + register::CONTROL, 4, u64::from(control::ACKNOWLEDGE));
    testbed.settle();
    assert_eq!(testbed.outputs, [wire(true), wire(false)]);
}

#[test]
fn a_reset_forgets_the_job_and_the_memory() {
    let (mut testbed, bar) = Testbed::ready(true);
    testbed.bus.write(bar + register::RAM, 4, 7);
    testbed.settle();
    assert_eq!(testbed.function.ram()[0], 7);
    driver::start_copy(&testbed.bus, bar, RAM, RAM + 0x1000, 0x1000);
    while let Some((id, request)) = testbed.bus.next_request() {
        testbed.root.handle(testbed.now, root::Input::Request(id, request), &Ready::ALL);
    }
    while let root::Output::Downstream(input @ Input::Tlp(_)) =
        testbed.root.poll(testbed.now, &Ready::ALL)
    {
        testbed.function.handle(testbed.now, input);
    }
    assert!(testbed.function.job.is_some());
    testbed.function.handle(testbed.now, Input::HotReset);
    assert!(testbed.function.job.is_none());
    assert_eq!((testbed.function.ram()[0], testbed.function.status), (0, 0));
}
