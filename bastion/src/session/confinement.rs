//! What a session cannot do, even if another program took its place in memory.
//!
//! All sessions have one user id, so the kernel would let one look into another one. Each gives that up
//! when it begins, for itself and for the ssh that it starts.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Calls by which a process looks into another one, or gets more of the kernel than a session needs.
const REFUSED: [libc::c_long; 22] = [
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Gives up what a session does not need. Other sessions cannot look into this one either.
pub(super) fn confine() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    seccompiler::apply_filter(&filter()?).map_err(io::Error::other)
}

fn filter() -> io::Result<BpfProgram> {
    let refused = REFUSED.into_iter().map(|call| (call, Vec::new()));
    let not_permitted = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(io::Error::other)?;
    let filter = SeccompFilter::new(
        refused.collect(),
        SeccompAction::Allow,
        not_permitted,
        architecture,
    );
    let program: Result<BpfProgram, _> = filter.map_err(io::Error::other)?.try_into();
    program.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_cannot_look_into_another_process_and_goes_on() {
        // A filter stays for the rest of a thread.
        let tried = std::thread::spawn(|| {
            seccompiler::apply_filter(&filter().unwrap()).unwrap();
            let unshared = nix::sched::unshare(nix::sched::CloneFlags::empty());
            (unshared, std::fs::read_to_string("/proc/self/stat").is_ok())
        });
        let (unshared, reads) = tried.join().unwrap();
        assert_eq!(unshared, Err(nix::errno::Errno::EPERM));
        assert!(reads);
    }
}
