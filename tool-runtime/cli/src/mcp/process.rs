//! [`ProcessGroup`]: a process that, on Unix, is killed together with its children.

use std::io;

use tokio::process::{Child, Command};

/// A process in its own group. Dropping the value before the end of the process was awaited kills the whole group; on
/// other systems than Unix, only the process.
pub(super) struct ProcessGroup(Child);

impl ProcessGroup {
    /// Starts the process.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        command.kill_on_drop(true).spawn().map(Self)
    }

    pub(super) const fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // `id` is the id of the group, too. It is `None` after the end was awaited, because the id may then belong to
        // another process.
        #[cfg(unix)]
        if let Some(group) = self.0.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
