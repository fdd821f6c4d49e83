//! Handles SIGBUS, the signal for an access to mapped bytes that do not exist: the file was
//! truncated, or a hole was punched and no page is free to fill it. The process continues.
//!
//! A process that shares the file can do both at any time. Seals do not prevent it: files on
//! hugetlbfs cannot be sealed, and holes can be punched in a file that is sealed against shrinking
//! (memfd_create(2), fallocate(2)). The handler replaces the missing page with a page of zeroes and
//! marks the mapping as dead: bytes that are copied from then on are invalid. The handler passes
//! all other faults to the previous handler.
//!
//! The handler can interrupt any instruction of any thread. Therefore it takes no lock and
//! allocates no memory (signal-safety(7)): the ranges are in a table of atomics with a fixed size.
//! The only system call of the handler for a missing page is mmap.

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// The maximum number of mappings of the process at one time. It is half of the kernel's default
/// limit (`vm.max_map_count`, 65530), because replacing a page splits a mapping into three.
const MAX_MAPPINGS: usize = 1 << 15;

/// The start address of an entry that is being written. No mapping has this address.
const TAKEN: usize = 1;

static TABLE: [Entry; MAX_MAPPINGS] = [const { Entry::free() }; MAX_MAPPINGS];
/// The entries from this index on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The handler of SIGBUS before [`on_fault`] was installed.
static PREVIOUS: OnceLock<SigAction> = OnceLock::new();

/// A registered range of addresses.
#[derive(Debug)]
struct Entry {
    /// Address of the first byte; 0 if the entry is free. It is written last. Thus a reader who
    /// reads the same value before and after reading the other fields knows that all belong to the
    /// same range.
    start: AtomicUsize,
    /// The first address behind the range.
    end: AtomicUsize,
    /// The page size of the file in bytes.
    page: AtomicUsize,
    dead: AtomicBool,
}

impl Entry {
    const fn free() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            page: AtomicUsize::new(0),
            dead: AtomicBool::new(false),
        }
    }

    /// The start and the size in bytes of the page that contains `address`; `None` if the page is
    /// not in this range.
    fn page_of(&self, address: usize) -> Option<(usize, usize)> {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        let page = self.page.load(Ordering::Acquire);
        let inside = start > TAKEN && (start..end).contains(&address);
        let same = self.start.load(Ordering::Acquire) == start;
        (inside && same).then(|| (start + (address - start) / page * page, page))
    }
}

/// A registered range. While this value lives, the process continues after faults in the range.
#[derive(Debug)]
pub(super) struct Guard(&'static Entry);

impl Guard {
    /// Registers `length` bytes from address `start` on, in pages of `page` bytes. `start` and
    /// `length` are multiples of `page`. Error: `ENOMEM` if the table is full, or the error of
    /// sigaction.
    pub(super) fn new(start: usize, length: usize, page: usize) -> Result<Self, Errno> {
        install()?;
        let free = |entry: &&Entry| {
            let order = Ordering::AcqRel;
            entry.start.compare_exchange(0, TAKEN, order, Ordering::Relaxed).is_ok()
        };
        let at = TABLE.iter().position(|entry| free(&entry)).ok_or(Errno::NOMEM)?;
        let entry = &TABLE[at];
        entry.dead.store(false, Ordering::Relaxed);
        entry.end.store(start + length, Ordering::Release);
        entry.page.store(page, Ordering::Release);
        USED.fetch_max(at + 1, Ordering::AcqRel);
        entry.start.store(start, Ordering::Release);
        Ok(Self(entry))
    }

    /// Whether any access before this call found a page of the range missing.
    pub(super) fn is_dead(&self) -> bool {
        // The handler runs on this thread, between two instructions.
        compiler_fence(Ordering::SeqCst);
        self.0.dead.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// Installs [`on_fault`] as the handler of SIGBUS of the process. Only the first call installs it;
/// all calls return the same result.
fn install() -> Result<(), Errno> {
    static DONE: OnceLock<Result<(), Errno>> = OnceLock::new();
    *DONE.get_or_init(|| {
        // The handler runs on the alternate stack, because the previous handler may need it: the
        // handler of Rust's standard library reports stack overflows.
        let (handler, flags) = (SigHandler::SigAction(on_fault), SaFlags::SA_ONSTACK);
        let ours = SigAction::new(handler, flags, SigSet::empty());
        // SAFETY: the handler does only what signal-safety(7) allows.
        let before = unsafe { sigaction(Signal::SIGBUS, &ours) };
        let before = before.map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        // If a fault outside the ranges occurs before this line, the instruction is repeated.
        let _ = PREVIOUS.set(before);
        Ok(())
    })
}

/// Handles SIGBUS: replaces the missing page, or forwards the signal.
extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a valid `info`, and SIGBUS has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // A signal that was sent by a process has no address (sigaction(2)).
    if code <= 0 || !replace(address) {
        forward(signal, code, info, context);
    }
}

/// Replaces the page that contains `address` with a page of zeroes, if `address` is in a registered
/// range. Returns whether the page was replaced.
fn replace(address: usize) -> bool {
    let used = &TABLE[..USED.load(Ordering::Acquire).min(MAX_MAPPINGS)];
    let found = used.iter().find_map(|entry| Some((entry, entry.page_of(address)?)));
    let Some((entry, (start, page))) = found else { return false };
    entry.dead.store(true, Ordering::Release);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the whole page is in a range that a `Mapping` owns. Only bytes and integers are
    // copied through a `Mapping`. The `Mapping` cannot be dropped now, because one of its accesses
    // caused this fault.
    unsafe { rustix::mm::mmap_anonymous(start as *mut c_void, page, protection, flags) }.is_ok()
}

/// Passes a fault outside the registered ranges to the previous handler.
fn forward(
    signal: libc::c_int,
    code: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let Some(before) = PREVIOUS.get() else { return };
    match before.handler() {
        SigHandler::SigDfl | SigHandler::SigIgn => {
            // SAFETY: restores an action that sigaction returned. After the return the instruction
            // faults again; a signal that a process sent is raised again below.
            let _ = unsafe { sigaction(Signal::SIGBUS, before) };
            if code <= 0 {
                let _ = raise(Signal::SIGBUS);
            }
        }
        SigHandler::SigAction(handler) => handler(signal, info, context),
        SigHandler::Handler(handler) => handler(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mapping, Shared};
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::MemfdFlags;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// A memfd without seals, which can be truncated.
    fn unsealed(size: u64) -> OwnedFd {
        let file = rustix::fs::memfd_create("ram", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, size).unwrap();
        file
    }

    #[test]
    fn a_file_that_is_cut_is_a_dead_mapping_and_no_more() {
        let file = unsealed(0x3000);
        let map = |offset| Mapping::new(file.as_fd(), offset, 0x1000, true, true).unwrap();
        let maps: Vec<_> = [0, 0x1000, 0x2000].map(map).into();
        maps.iter().for_each(|map| map.write(0, &[7; 100]).unwrap());
        rustix::fs::ftruncate(&file, 0x1000).unwrap();
        // Each kind of access fails.
        let mut back = [1; 100];
        assert_eq!(maps[1].read(0, &mut back), None);
        assert_eq!(maps[2].load(0), None);
        assert_eq!(maps[2].swap(4, 1), None);
        assert_eq!(maps[2].write(8, &[1; 8]), None);
        assert!(maps[1].is_dead() && maps[2].is_dead() && !maps[0].is_dead());
        assert_eq!(maps[0].read(0, &mut back), Some(()));
        assert_eq!(back, [7; 100]);
        // The mapping stays dead, even after the file has grown again.
        rustix::fs::ftruncate(&file, 0x3000).unwrap();
        assert_eq!(maps[1].read(0, &mut back), None);
        drop(maps);
        let again = map(0x1000);
        assert_eq!(again.read(0, &mut back), Some(()), "its entry is free for another");
    }

    #[test]
    fn each_thread_detects_only_its_own_dead_mapping() {
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..100 {
                        let (file, whole) =
                            (unsealed(0x2000), Shared::new("whole", 0, 64).unwrap());
                        let map = Mapping::new(file.as_fd(), 0, 0x2000, true, true).unwrap();
                        rustix::fs::ftruncate(&file, 0x1000).unwrap();
                        assert_eq!(map.write(0xff0, &[1; 16]), Some(()));
                        assert_eq!(map.write(0xff8, &[1; 16]), None);
                        assert_eq!(whole.mapping.load(0), Some(0));
                    }
                });
            }
        });
    }

    #[test]
    fn any_other_fault_still_ends_the_process() {
        const INSIDE: &str = "FARLANE_TEST_FAULTS";
        if std::env::var_os(INSIDE).is_none() {
            let name = "mapping::fault::tests::any_other_fault_still_ends_the_process";
            let mut again = Command::new(std::env::current_exe().unwrap());
            let status = again.args(["--exact", name]).env(INSIDE, "1").output().unwrap().status;
            assert_eq!(status.signal(), Some(nix::libc::SIGBUS), "{status}");
            return;
        }
        let own = Shared::new("ours", 0, 0x1000).unwrap();
        assert_eq!(own.mapping.load(0), Some(0));
        let (file, flags) = (unsealed(0x1000), super::MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let foreign = unsafe {
            let none = std::ptr::null_mut();
            rustix::mm::mmap(none, 0x1000, super::ProtFlags::READ, flags, &file, 0).unwrap()
        };
        rustix::fs::ftruncate(&file, 0).unwrap();
        // SAFETY: mapped above; the fault that follows is what the test is for.
        let byte = unsafe { foreign.cast::<u8>().read_volatile() };
        panic!("read {byte} from a file without bytes");
    }
}
