//! A private PostgreSQL server with a separate folder and a socket in it, without network. Dropping it removes it.

#![allow(clippy::expect_used, clippy::panic)] // A test cannot continue without its server.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// The message for missing programs.
const MISSING: &str = "PostgreSQL's programs are not installed: `apt-get install postgresql` (13 or newer), or leave out \
                       the feature `postgres` of the package `tests`";

/// The maximum lifetime of a server in seconds, after which it ends even if its test was killed.
const MOST_SECONDS: &str = "3600";

/// A private server. Its commits are durable (`fsync` is on by default), as in production.
pub struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    /// The user and group of the server, because PostgreSQL refuses to run as root. `None` if the test is not root.
    user: Option<(u32, u32)>,
    server: Option<Child>,
    /// The small disk of [`Self::small_disk`].
    small: Option<Disk>,
}

impl Postgres {
    /// Makes a database cluster and starts its server.
    ///
    /// # Panics
    /// The programs are missing, or the server does not start.
    #[must_use]
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the server");
        let is_root = fs::metadata(folder.path()).expect("the folder").uid() == 0;
        let user = is_root.then(|| (id("-u"), id("-g")));
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group)).expect("a folder of the server's user");
        }
        let mut postgres = Self { folder, programs: programs(), user, server: None, small: None };
        let data = postgres.data();
        let mut initdb = postgres.program("initdb");
        let made = initdb.arg("-D").arg(&data).args(["-U", "app", "-A", "trust", "-E", "UTF8", "--locale=C"]).output();
        succeeded(&made.expect("initdb runs"), "initdb");
        // The user `guarded`, which some tests create, needs a password.
        let rules = data.join("pg_hba.conf");
        let others = fs::read_to_string(&rules).expect("the rules");
        fs::write(&rules, format!("local all guarded scram-sha-256\n{others}")).expect("the rules");
        postgres.restart();
        postgres
    }

    /// Creates a schema of this name, and returns the address of the database with it.
    #[must_use]
    pub fn url(&self, schema: &str) -> String {
        self.sql(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
        format!(
            "postgres://app@localhost/postgres?host={}&options=-csearch_path%3D{schema}",
            self.folder.path().display()
        )
    }

    /// The address of the same database through a proxy on this port.
    #[must_use]
    pub fn tcp_url(&self, port: u16, schema: &str) -> String {
        self.sql(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
        format!("postgres://app@127.0.0.1:{port}/postgres?options=-csearch_path%3D{schema}")
    }

    /// The socket that the server listens on.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    /// Runs statements as an administrator would, and returns their output.
    ///
    /// # Panics
    /// They fail.
    #[allow(clippy::must_use_candidate, reason = "statements are run for what they do")]
    pub fn sql(&self, statements: &str) -> String {
        let mut psql = self.program("psql");
        let ran = psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "app", "-d", "postgres"]);
        let ran = ran.arg("-h").arg(self.folder.path()).args(["-c", statements]).output().expect("psql runs");
        succeeded(&ran, "psql");
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Changes a setting of the server while it runs.
    pub fn set(&self, setting: &str, value: &str) {
        self.sql(&format!("ALTER SYSTEM SET {setting} = {value}"));
        self.sql("SELECT pg_reload_conf()");
        while self.sql(&format!("SHOW {setting}")) != value {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Measures the time of one client's commit of one row, in milliseconds.
    ///
    /// # Panics
    /// `pgbench` is not installed.
    #[must_use]
    pub fn commit_ms(&self) -> f64 {
        self.sql("CREATE TABLE IF NOT EXISTS public.committed (x int)");
        let script = self.folder.path().join("commit.sql");
        fs::write(&script, "INSERT INTO public.committed VALUES (1);\n").expect("a script");
        let mut pgbench = self.program("pgbench");
        pgbench.args(["-n", "-M", "prepared", "-T", "1", "-U", "app", "-h"]).arg(self.folder.path());
        let ran = pgbench.arg("-f").arg(script).arg("postgres").output().expect("pgbench runs");
        succeeded(&ran, "pgbench");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let latency = said.lines().find_map(|line| line.strip_prefix("latency average = ")?.strip_suffix(" ms"));
        latency.and_then(|latency| latency.parse().ok()).expect("a latency")
    }

    /// Creates a tablespace `small` on a disk of one mebibyte. Returns `false` if this machine does not permit the
    /// mount.
    ///
    /// # Panics
    ///
    /// If its folder cannot be made.
    pub fn small_disk(&mut self) -> bool {
        let Some((user, group)) = self.user else { return false };
        let place = self.folder.path().join("small");
        fs::create_dir(&place).expect("a folder for the disk");
        self.small = Disk::mount(&place, &format!("size=1m,mode=700,uid={user},gid={group}"));
        if self.small.is_some() {
            self.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
        }
        self.small.is_some()
    }

    /// Kills the server, as a crash or a power cut would.
    pub fn kill(&mut self) {
        self.signal("-KILL");
        self.wait();
    }

    /// Starts the server of this folder again, and waits until it answers.
    ///
    /// # Panics
    /// It ends a hundred times before it answers.
    pub fn restart(&mut self) {
        let mut spawned = 0;
        while spawned < 100 {
            // A killed server's shared memory keeps the next one out until its last process has ended.
            if self.server.as_mut().is_none_or(|server| !matches!(server.try_wait(), Ok(None))) {
                self.server = Some(self.spawn());
                spawned += 1;
            }
            let mut ready = self.program("pg_isready");
            let ready = ready.arg("-q").arg("-h").arg(self.folder.path()).status().expect("pg_isready runs");
            if ready.success() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not start: {}", fs::read_to_string(self.folder.path().join("log")).unwrap_or_default());
    }

    fn spawn(&self) -> Child {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a log");
        // `timeout` ends the server if this process is killed and cannot.
        let mut server = self.run("timeout");
        server.args(["-s", "INT", MOST_SECONDS]).arg(self.programs.join("postgres")).arg("-D").arg(self.data());
        server.args(["-c", "listen_addresses=", "-c", "shared_buffers=32MB", "-k"]);
        let server = server.arg(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        server.expect("the server starts")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        self.run(self.programs.join(name))
    }

    fn run(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path());
        command
    }

    /// Sends a signal to the server itself, by the id in its file.
    fn signal(&self, signal: &str) {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(id) = file.lines().next() {
            drop(Command::new("kill").args([signal, id]).stderr(Stdio::null()).status());
        }
    }

    fn wait(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.wait());
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // `SIGQUIT`: an immediate shutdown, which does not wait for clients.
        self.signal("-QUIT");
        self.wait();
        // The disk is unmounted before the folder that contains its mount point is removed.
        drop(self.small.take());
    }
}

/// A small disk in memory. Dropping it unmounts it as soon as no process uses it, also when a test fails.
#[derive(Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk. Returns `None` if this machine does not permit it.
    #[must_use]
    pub fn mount(place: &Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(place).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status());
    }
}

/// The newest programs of Debian's packages, or those in the path.
fn programs() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = installed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    if let Some(version) = versions.max() {
        return Path::new("/usr/lib/postgresql").join(version.to_string()).join("bin");
    }
    let found = Command::new("sh").args(["-c", "command -v initdb"]).output().map(|output| output.stdout);
    let found = String::from_utf8(found.unwrap_or_default()).unwrap_or_default();
    let real = fs::canonicalize(found.trim()).unwrap_or_else(|_| panic!("{MISSING}"));
    real.parent().unwrap_or_else(|| panic!("{MISSING}")).to_owned()
}

fn id(of: &str) -> u32 {
    let output = Command::new("id").args([of, "postgres"]).output().expect("id runs");
    let number = String::from_utf8_lossy(&output.stdout).trim().parse();
    number.unwrap_or_else(|_| panic!("PostgreSQL refuses to run as root, and there is no user `postgres`"))
}

#[track_caller]
fn succeeded(output: &Output, program: &str) {
    let said = || io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{program}: {}", said());
}
