//! XDP programs on interfaces of this network namespace. They forward frames without queueing
//! disciplines (Linux Documentation/bpf/redirect.rst).

use crate::kernel::{Instruction, attach_xdp, load_xdp};
use crate::netdev;
use linux::Interface;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::str::FromStr;

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel allocates a buffer for the frame.
    #[default]
    Native,
    /// In the kernel, with any driver.
    Generic,
}

impl Mode {
    /// `XDP_FLAGS_DRV_MODE` and `XDP_FLAGS_SKB_MODE` of linux/if_link.h.
    const fn flags(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

impl FromStr for Mode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Native, Self::Generic]
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| format!("invalid mode '{text}': expected native or generic"))
    }
}

/// An XDP program on an interface. The kernel removes the program on drop or when the process ends.
#[derive(Debug)]
pub struct Attached {
    _link: OwnedFd,
}

impl Attached {
    /// Attaches a program that sends every frame that the interface `from` receives out of `to`,
    /// unchanged.
    ///
    /// # Errors
    /// A sentence that names the interface and the cause.
    fn redirect(from: &str, to: &str, mode: Mode) -> Result<Self, String> {
        let to = Interface::find(to).map_err(|error| error.to_string())?;
        Self::attach(&redirecting(to.index()), from, mode)
    }

    /// Attaches a program that passes every frame to the kernel. The peer of a veth that is a
    /// redirection target needs a program.
    ///
    /// # Errors
    /// A sentence that names the interface and the cause.
    pub fn pass(on: &str, mode: Mode) -> Result<Self, String> {
        Self::attach(&[set(0, XDP_PASS), EXIT], on, mode)
    }

    fn attach(program: &[Instruction], on: &str, mode: Mode) -> Result<Self, String> {
        let interface = Interface::find(on).map_err(|error| error.to_string())?;
        let program = load_xdp(program).map_err(|error| not_loaded(&error))?;
        let link = attach_xdp(program.as_fd(), interface.index(), mode.flags())
            .map_err(|error| not_attached(on, mode, &error))?;
        Ok(Self { _link: link })
    }
}

/// Joins two interfaces: each interface sends the frames that the other one receives.
///
/// # Errors
/// A sentence that names the interface and the cause.
pub fn join(a: &str, b: &str, mode: Mode) -> Result<[Attached; 2], String> {
    let both = [Attached::redirect(a, b, mode)?, Attached::redirect(b, a, mode)?];
    // Some drivers transmit redirected frames only while a program is on their interface.
    if mode == Mode::Native {
        check_targets(&[a, b])?;
    }
    Ok(both)
}

/// Fails if the driver of one of these interfaces drops redirected frames. The veth driver drops
/// them while the peer has neither a program nor GRO (Linux drivers/net/veth.c, `veth_xdp_xmit`).
/// Linux before 6.3 does not report this property.
///
/// # Errors
/// A sentence that names the interfaces and what to do.
fn check_targets(names: &[&str]) -> Result<(), String> {
    let mut dropping = Vec::new();
    for name in names {
        let interface = Interface::find(name).map_err(|error| error.to_string())?;
        let transmits = netdev::transmits_redirected(interface.index());
        if transmits.map_err(|error| format!("{name}: {error}"))? == Some(false) {
            dropping.push(*name);
        }
    }
    if dropping.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the driver drops what native XDP redirects to {}: for a veth, run `ethtool -K PEER gro on` \
         (`gro off` before it, if it was on) while its peer is up, or `farlane latency redirect \
         --pass PEER` there, or use --mode generic",
        dropping.join(" and ")
    ))
}

/// `XDP_PASS` of `enum xdp_action`, linux/bpf.h.
const XDP_PASS: i32 = 2;
/// `BPF_FUNC_redirect` of linux/bpf.h. Its arguments are the index of an interface, and flags that
/// must be 0. An XDP program returns the result of this function.
const REDIRECT: i32 = 23;
/// Operation codes (Linux Documentation/bpf/standardization/instruction-set.rst): register =
/// constant (class ALU64, MOV), the call of a helper function (class JMP, CALL) and the end of the
/// program (class JMP, EXIT). Arguments are in registers 1 to 5, results in register 0.
const MOV: u8 = 0xb7;
const CALL: Instruction = Instruction { code: 0x85, registers: 0, offset: 0, immediate: REDIRECT };
const EXIT: Instruction = Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 };

const fn set(register: u8, immediate: i32) -> Instruction {
    Instruction { code: MOV, registers: register, offset: 0, immediate }
}

/// A program that sends frames out of an interface.
fn redirecting(interface: u32) -> [Instruction; 4] {
    [set(1, interface as i32), set(2, 0), CALL, EXIT]
}

fn not_loaded(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "XDP needs CAP_BPF and CAP_NET_ADMIN; run as root outside of user namespaces".to_owned()
        }
        Some(Errno::NOSYS | Errno::INVAL) => format!("this kernel has no XDP programs: {error}"),
        _ => format!("the kernel rejects the XDP program: {error}"),
    }
}

/// The message for an error of the kernel (Linux net/core/dev.c, `dev_xdp_attach`;
/// drivers/net/veth.c, `veth_xdp_set`).
fn not_attached(name: &str, mode: Mode, error: &io::Error) -> String {
    let why = match Errno::from_io_error(error) {
        Some(Errno::PERM) => "CAP_NET_ADMIN is missing".to_owned(),
        Some(Errno::OPNOTSUPP) if mode == Mode::Native => {
            "its driver has no native XDP; use --mode generic".to_owned()
        }
        Some(Errno::BUSY | Errno::EXIST) => {
            format!("it already has an XDP program; see `ip link show {name}`")
        }
        Some(Errno::RANGE | Errno::TOOBIG) => {
            "its MTU or its peer's MTU is too large for native XDP".to_owned()
        }
        Some(Errno::INVAL | Errno::NOSPC) => {
            "Linux 5.9 or newer is needed, and for native XDP on a veth as many receive queues as \
             its peer has transmit queues (`ip link add ... numrxqueues N`)"
                .to_owned()
        }
        _ => error.to_string(),
    };
    format!("{mode} XDP cannot be attached to {name}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `clang -target bpf` for `return bpf_redirect(N, 0)`.
    #[test]
    fn the_program_is_that_of_the_instruction_set() {
        let bytes = |instruction: Instruction| {
            let mut bytes = vec![instruction.code, instruction.registers];
            bytes.extend(instruction.offset.to_le_bytes());
            bytes.extend(instruction.immediate.to_le_bytes());
            bytes
        };
        let program: Vec<_> = redirecting(0x0102).map(bytes).concat();
        let golden = [
            [0xb7, 1, 0, 0, 2, 1, 0, 0],
            [0xb7, 2, 0, 0, 0, 0, 0, 0],
            [0x85, 0, 0, 0, 23, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(program, golden.concat());
    }

    #[test]
    fn refusals_say_what_to_do() {
        let why = |mode, errno: Errno| not_attached("eth7", mode, &errno.into());
        let native = why(Mode::Native, Errno::OPNOTSUPP);
        assert!(native.contains("eth7") && native.ends_with("use --mode generic"), "{native}");
        assert!(why(Mode::Generic, Errno::BUSY).contains("`ip link show eth7`"));
        assert!(why(Mode::Native, Errno::INVAL).contains("numrxqueues"));
        assert!(not_loaded(&Errno::PERM.into()).contains("CAP_BPF"));
    }

    #[test]
    fn modes_are_read_as_they_are_printed() {
        for mode in [Mode::Native, Mode::Generic] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("skb".parse::<Mode>().unwrap_err().contains("native or generic"));
    }
}
