//! The commands of bpf(2) that XDP programs need.

use nix::libc;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

/// An instruction (`struct bpf_insn` of linux/bpf.h, on little-endian machines).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    /// The operation code.
    pub code: u8,
    /// Bits 3:0 are the destination register, bits 7:4 the source register.
    pub registers: u8,
    /// The offset of a jump or a memory access.
    pub offset: i16,
    /// A constant.
    pub immediate: i32,
}

/// `enum bpf_cmd`, `bpf_prog_type` and `bpf_attach_type` of linux/bpf.h.
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;

/// The first fields of `union bpf_attr` of linux/bpf.h for `BPF_PROG_LOAD`. In the kernel all
/// further fields are zero (bpf(2)).
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
}

/// The first fields of `union bpf_attr` for `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// Loads an XDP program. Error: as bpf(2).
pub(crate) fn load_xdp(program: &[Instruction]) -> io::Result<OwnedFd> {
    // The program uses no helper function that requires the GPL.
    let license = c"MIT OR Apache-2.0";
    let attributes = ProgLoad {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
    };
    // SAFETY: `program` has `insn_cnt` instructions and `license` ends with a zero; both outlive
    // the call, in which the kernel copies them.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }
}

/// Attaches an XDP program to an interface of this thread's network namespace. The program stays
/// until the returned descriptor is closed. `flags` are `XDP_FLAGS_*` of linux/if_link.h. Error: as
/// bpf(2).
pub(crate) fn attach_xdp(
    program: BorrowedFd<'_>,
    interface: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let prog_fd = program.as_raw_fd() as u32;
    let attributes = LinkCreate { prog_fd, target_ifindex: interface, attach_type: BPF_XDP, flags };
    // SAFETY: there is no address in the attributes.
    unsafe { bpf(BPF_LINK_CREATE, &attributes) }
}

/// Executes a command that returns a descriptor.
///
/// # Safety
/// `attributes` must match the command, and the addresses in them must be valid until it returns.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of `attributes`, and the caller guarantees
    // the addresses in them.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    match fd {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has opened it for this call, with close-on-exec.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
    }
}
