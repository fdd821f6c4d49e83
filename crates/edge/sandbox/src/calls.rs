//! Denies system calls (seccomp(2)).
//!
//! The filter lists what is denied. A list of what is allowed would be stronger, but breaks nodes on
//! machines whose C library makes calls that are not on it: libraries try new calls first, and fall
//! back after `ENOSYS` only.
//!
//! A denied call fails with `EPERM`, which the node handles as any other error.

use crate::needs::Needs;

/// Denies system calls for this thread; returns the number of those that always fail. The error is
/// the reason why the kernel denies none.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn restrict(needs: &Needs) -> Result<usize, String> {
    filter::restrict(needs)
}

/// No filter: the numbers of system calls differ by architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn restrict(_: &Needs) -> Result<usize, String> {
    Err("only for x86-64 and AArch64".into())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter {
    use crate::needs::Needs;
    use nix::libc;
    use seccompiler::SeccompCmpOp::{self, Eq, MaskedEq, Ne};
    use seccompiler::{
        BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter, sock_filter,
    };
    use std::collections::BTreeMap;
    use std::env::consts::ARCH;

    /// Calls that no node makes after its start.
    const DENIED: &[libc::c_long] = &[
        // Programs, and other processes.
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_process_mrelease,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_getfd,
        libc::SYS_pidfd_send_signal,
        libc::SYS_kill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
        libc::SYS_kcmp,
        libc::SYS_move_pages,
        libc::SYS_migrate_pages,
        // Namespaces and mounts.
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_quotactl,
        libc::SYS_quotactl_fd,
        libc::SYS_acct,
        // The kernel and the machine.
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_kexec_load,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_syslog,
        libc::SYS_reboot,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_adjtimex,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_vhangup,
        libc::SYS_personality,
        libc::SYS_nfsservctl,
        // Keys.
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        // Users and capabilities.
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setreuid,
        libc::SYS_setregid,
        libc::SYS_setresuid,
        libc::SYS_setresgid,
        libc::SYS_setfsuid,
        libc::SYS_setfsgid,
        libc::SYS_setgroups,
        libc::SYS_capset,
        // Files past their folders; changes of owner, mode and attributes by path, which Landlock
        // does not restrict. Records of images use fchmod(2) and fchown(2).
        libc::SYS_open_by_handle_at,
        libc::SYS_name_to_handle_at,
        libc::SYS_fanotify_init,
        libc::SYS_fanotify_mark,
        libc::SYS_mknodat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_fchmodat,
        FCHMODAT2,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
        SETXATTRAT,
        REMOVEXATTRAT,
        FILE_SETATTR,
        // Memory: placement, and sharing that no node uses.
        libc::SYS_mbind,
        libc::SYS_set_mempolicy,
        libc::SYS_set_mempolicy_home_node,
        libc::SYS_remap_file_pages,
        libc::SYS_memfd_secret,
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_semget,
        libc::SYS_semctl,
        libc::SYS_semtimedop,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
    ];

    /// The same number on all architectures (linux/include/uapi/asm-generic/unistd.h, Linux 6.6).
    const FCHMODAT2: libc::c_long = 452;
    /// The same, Linux 6.13 and 6.17.
    const SETXATTRAT: libc::c_long = 463;
    const REMOVEXATTRAT: libc::c_long = 466;
    const FILE_SETATTR: libc::c_long = 469;

    /// Calls that only x86-64 has, or that it has under an older name too.
    #[cfg(target_arch = "x86_64")]
    const DENIED_HERE: &[libc::c_long] = &[
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_kexec_file_load,
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_modify_ldt,
        libc::SYS_uselib,
        libc::SYS_mknod,
        libc::SYS_link,
        libc::SYS_symlink,
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ];
    /// kexec_file_load, which libraries of AArch64 do not all define
    /// (linux/include/uapi/asm-generic/unistd.h).
    #[cfg(not(target_arch = "x86_64"))]
    const DENIED_HERE: &[libc::c_long] = &[294];

    /// How io_uring begins. Its operations, such as openat, pass no seccomp filter.
    const IO_URING: &[libc::c_long] =
        &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

    pub(super) fn restrict(needs: &Needs) -> Result<usize, String> {
        let io_uring = if needs.io_uring { &[] } else { IO_URING };
        let always: Vec<_> = [DENIED, DENIED_HERE, io_uring].concat();
        let count = always.len();
        let mut rules: Rules = always.into_iter().map(|call| (call, Vec::new())).collect();
        rules.extend(by_arguments(needs).map_err(text)?);
        let denied = program(rules, libc::EPERM).map_err(text)?;
        // Its flags are in memory, which a filter cannot read. After ENOSYS, C libraries use clone.
        let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let unknown = program(clone3, libc::ENOSYS).map_err(text)?;
        for program in [with_x32(denied), unknown] {
            apply_filter(&program).map_err(|error| match error {
                // A kernel without CONFIG_SECCOMP or CONFIG_SECCOMP_FILTER.
                Error::Seccomp(error)
                    if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
                {
                    "kernel without it".to_owned()
                }
                error => text(error),
            })?;
        }
        Ok(count)
    }

    type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

    fn text(error: impl std::fmt::Display) -> String {
        error.to_string()
    }

    /// A filter that lets calls without a rule pass.
    fn program(rules: Rules, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
        let error = SeccompAction::Errno(error as u32);
        SeccompFilter::new(rules, SeccompAction::Allow, error, ARCH.try_into()?)?.try_into()
    }

    /// Calls that are denied with some arguments.
    fn by_arguments(needs: &Needs) -> Result<Rules, seccompiler::BackendError> {
        // Socket families; the node uses stream sockets, and datagrams over none but AF_UNIX.
        let mut families = vec![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
        if needs.packet_sockets {
            // Netlink lists the interfaces (getifaddrs(3)).
            families.extend([libc::AF_PACKET, libc::AF_NETLINK]);
        }
        let other: Vec<_> = families.iter().map(|family| (0, Ne, *family)).collect();
        // The low four bits are the type, others are flags (linux/include/linux/net.h).
        let datagram = [(0, Ne, libc::AF_UNIX), (1, MaskedEq(0xf), libc::SOCK_DGRAM)];
        // For Landlock only TCP has ports; MPTCP and SCTP are other protocols.
        let other_stream = |family| [(0, Eq, family), (2, Ne, 0), (2, Ne, libc::IPPROTO_TCP)];
        let mut sockets = vec![rule(&other)?, rule(&datagram)?];
        for family in [libc::AF_INET, libc::AF_INET6] {
            sockets.push(rule(&other_stream(family))?);
        }
        // Memory with instructions: all are mapped at the start.
        let executable = |at| rule(&[(at, MaskedEq(libc::PROT_EXEC as u64), libc::PROT_EXEC)]);
        // Input for the shell of the node's terminal (ioctl_tty(2)).
        let terminal = |command: libc::Ioctl| rule(&[(1, Eq, command as libc::c_int)]);
        // Without CLONE_THREAD, clone makes processes and namespaces.
        let no_thread = rule(&[(0, MaskedEq(libc::CLONE_THREAD as u64), 0)]);
        Ok(Rules::from([
            (libc::SYS_socket, sockets),
            (libc::SYS_mmap, vec![executable(2)?]),
            (libc::SYS_mprotect, vec![executable(2)?]),
            (libc::SYS_pkey_mprotect, vec![executable(2)?]),
            (libc::SYS_ioctl, vec![terminal(libc::TIOCSTI)?, terminal(TIOCLINUX)?]),
            (libc::SYS_clone, vec![no_thread?]),
        ]))
    }

    /// ioctl_console(2); linux/include/uapi/asm-generic/ioctls.h.
    const TIOCLINUX: libc::Ioctl = 0x541c;

    /// A rule with all of these conditions: argument, comparison, value of 32 bits.
    fn rule(
        conditions: &[(u8, SeccompCmpOp, libc::c_int)],
    ) -> Result<SeccompRule, seccompiler::BackendError> {
        let conditions = conditions.iter().map(|(argument, comparison, value)| {
            let (length, value) = (SeccompCmpArgLen::Dword, *value as u32);
            SeccompCondition::new(*argument, length, comparison.clone(), value.into())
        });
        SeccompRule::new(conditions.collect::<Result<_, _>>()?)
    }

    /// On x86-64, also denies the calls of the x32 ABI: the same calls with a bit in their numbers
    /// (`__X32_SYSCALL_BIT`, linux/arch/x86/include/uapi/asm/unistd.h).
    fn with_x32(program: BpfProgram) -> BpfProgram {
        if ARCH != "x86_64" {
            return program;
        }
        let deny = SeccompAction::Errno(libc::EPERM as u32).into();
        // bpf(4) of BSD, linux/filter.h: load the number, compare, return.
        let prefix = [
            sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
            sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 },
            sock_filter { code: 0x06, jt: 0, jf: 0, k: deny },
        ];
        prefix.into_iter().chain(program).collect()
    }
}
