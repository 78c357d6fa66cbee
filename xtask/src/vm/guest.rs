//! One boot: qemu without hardware help, the machine's files below a throw-away layer, one command in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::image;
use super::kernel::Kernel;
use crate::process;
use crate::progress::Step;

/// From qemu's start to the command's; it is three to six seconds on an idle machine.
const BOOT_LIMIT: Duration = Duration::from_secs(90);

/// Emulation slows programs about thirty times, so what takes seconds takes minutes.
const COMMAND_LIMIT: Duration = Duration::from_secs(900);

/// How often a guest that dies before its command starts is booted again: that says nothing about the command.
const BOOT_TRIES: u32 = 3;

/// How much of what a dead guest said is shown.
const LAST_LINES: usize = 40;

/// What kernels, and our process 1, write when they cannot go on.
const CRASH_WORDS: [&str; 5] = ["BUG:", "Oops", "Kernel panic", "guest: ", "out of memory"];

/// Debian's places for the daemon that shares files with a guest.
const VIRTIOFSD: [&str; 2] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];

/// A command for the guest.
pub struct GuestCommand<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    pub folder: &'a Path,
    /// What it gets beside `PATH` and `HOME`.
    pub environment: &'a [(&'a str, String)],
}

/// How a command in the guest ended.
pub struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Boots `kernel` and runs `command` in it as root.
///
/// # Errors
/// When the guest does not come up, dies under the command, or the command takes too long.
pub fn run(cache: &Path, kernel: &Kernel, command: &GuestCommand<'_>) -> Result<Outcome> {
    let image = image::bootable(kernel)?;
    let initramfs = image::initramfs(kernel)?;
    let run = RunFolder::new(cache)?;
    let what = command.program.file_name().unwrap_or_default().to_string_lossy();
    let step = Step::begin(format!("{what} on {}", kernel.version));
    let mut result = Ok(None);
    for _ in 0..BOOT_TRIES {
        run.clear(command)?;
        result = boot(&run, kernel, &image, &initramfs, &step);
        if !matches!(result, Ok(None)) {
            break;
        }
    }
    if matches!(result, Ok(Some(_))) {
        step.end()
    } else {
        step.fail()
    }
    match result? {
        Some(outcome) => Ok(outcome),
        None => bail!("kernel {} did not boot; the guest's last words: {}", kernel.version, run.last_words()),
    }
}

/// One try; nothing when the guest died before the command started.
fn boot(
    run: &RunFolder,
    kernel: &Kernel,
    image: &Path,
    initramfs: &Path,
    step: &Step,
) -> Result<Option<Outcome>> {
    let _files = share_files(run)?;
    let log = File::create(run.path("qemu.log")).context("cannot write qemu's log")?;
    let mut qemu = Process(
        qemu(run, kernel, image, initramfs)
            .stdout(log.try_clone().context("cannot share qemu's log")?)
            .stderr(log)
            .spawn()
            .context("cannot start qemu-system-x86_64")?,
    );
    let booting_until = Instant::now() + BOOT_LIMIT;
    let running_until = Instant::now() + BOOT_LIMIT + COMMAND_LIMIT;
    while qemu.0.try_wait().context("cannot ask for qemu's status")?.is_none() {
        let up = run.path("up").exists();
        if !up && Instant::now() > booting_until {
            return Ok(None);
        }
        if Instant::now() > running_until {
            bail!("the command in the guest took longer than {} s", COMMAND_LIMIT.as_secs());
        }
        step.show(&if up { run.last_line() } else { "booting".to_owned() });
        thread::sleep(Duration::from_millis(100));
    }
    match run.read("status").trim().parse() {
        Ok(status) => Ok(Some(Outcome { status, stdout: run.read("stdout"), stderr: run.read("stderr") })),
        Err(_) if !run.path("up").exists() => Ok(None),
        Err(_) => bail!("kernel {} died under the command: {}", kernel.version, run.last_words()),
    }
}

fn share_files(run: &RunFolder) -> Result<Process> {
    let program = VIRTIOFSD.iter().find(|path| Path::new(path).exists()).context("virtiofsd is missing")?;
    let log = File::create(run.path("virtiofsd.log")).context("cannot write virtiofsd's log")?;
    let socket = run.path("files.socket");
    let mut daemon = process::command(program);
    daemon.arg(format!("--socket-path={}", socket.display()));
    daemon.args(["-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=auto"]);
    daemon.stdout(Stdio::null()).stderr(log);
    let mut daemon = Process(daemon.spawn().context("cannot start virtiofsd")?);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !socket.exists() {
        if daemon.0.try_wait().context("cannot ask for virtiofsd's status")?.is_some()
            || Instant::now() > deadline
        {
            bail!("virtiofsd did not start: {}", run.read("virtiofsd.log").trim());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(daemon)
}

fn qemu(run: &RunFolder, kernel: &Kernel, image: &Path, initramfs: &Path) -> Command {
    let at = |name: &str| run.path(name).display().to_string();
    let mut qemu = process::command("qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    // One thread for all virtual processors: with several, qemu's emulation now and then dies while the guest's
    // kernel patches its own code.
    qemu.args(["-M", "q35,hpet=off", "-accel", "tcg,thread=single", "-cpu", "max,la57=off", "-smp", "2"]);
    qemu.args(["-m", "2G", "-object", "memory-backend-memfd,id=memory,size=2G,share=on"]);
    qemu.args(["-numa", "node,memdev=memory"]);
    qemu.arg("-kernel").arg(image).arg("-initrd").arg(initramfs);
    qemu.arg("-append").arg(format!(
        "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off nokaslr vm_run={} vm_kernel={}",
        run.folder.display(),
        kernel.folder.display()
    ));
    let socket = format!("socket,id=files,path={}", at("files.socket"));
    qemu.args(["-chardev", &socket, "-device", "vhost-user-fs-pci,chardev=files,tag=host,queue-size=1024"]);
    qemu.args(["-chardev", &format!("file,id=console,path={}", at("console")), "-serial", "chardev:console"]);
    qemu.args(["-device", "virtio-serial-pci"]);
    for name in ["stdout", "stderr"] {
        qemu.args(["-chardev", &format!("file,id={name},path={}", at(name))]);
        qemu.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
    }
    qemu
}

/// A child that does not outlive its handle.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a child that has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder through which machine and guest talk about one boot.
struct RunFolder {
    folder: PathBuf,
}

impl RunFolder {
    fn new(cache: &Path) -> Result<Self> {
        let folder = cache.join(format!("run.{}", std::process::id()));
        Ok(Self { folder })
    }

    /// Makes it new, with only the command in it.
    fn clear(&self, command: &GuestCommand<'_>) -> Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).context("cannot clear the run folder")?;
        }
        fs::create_dir_all(&self.folder).with_context(|| format!("cannot make {}", self.folder.display()))?;
        fs::write(self.path("command"), script(command)).context("cannot write the guest's command")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What is in a file by now.
    fn read(&self, name: &str) -> String {
        fs::read(self.path(name))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    fn last_line(&self) -> String {
        self.read("stdout").lines().last().unwrap_or("running").trim().to_owned()
    }

    /// The line that says why a guest died; the end of everything it said goes to the reader first.
    fn last_words(&self) -> String {
        let logs = [self.read("qemu.log"), self.read("virtiofsd.log"), self.read("console")].concat();
        let lines: Vec<&str> = logs.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        println!("    {}", lines[lines.len().saturating_sub(LAST_LINES)..].join("\n    "));
        cause(&lines).unwrap_or("it said nothing").to_owned()
    }
}

/// The first line that names a crash, or else the last one.
fn cause<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let names_crash = |line: &&&str| CRASH_WORDS.iter().any(|word| line.contains(word));
    lines.iter().find(names_crash).or(lines.last()).copied()
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What stays behind is small, and the next run with this process id clears it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The command as a shell script: the guest's process 1 knows nothing of arguments and environment.
fn script(command: &GuestCommand<'_>) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut script = format!("export PATH={} HOME=/root\n", quoted(&format!("{path}:/usr/sbin:/sbin")));
    for (name, value) in command.environment {
        script += &format!("export {name}={}\n", quoted(value));
    }
    script += &format!("cd {} || exit 126\n", quoted(&command.folder.to_string_lossy()));
    script += &format!("exec {}", quoted(&command.program.to_string_lossy()));
    for arg in command.args {
        script += &format!(" {}", quoted(arg));
    }
    script + "\n"
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_crash_is_its_first_line() {
        assert_eq!(cause(&["boot", "BUG: null pointer", "Oops: 2", "end"]), Some("BUG: null pointer"));
        assert_eq!(cause(&["boot", "end"]), Some("end"));
        assert_eq!(cause(&[]), None);
    }

    #[test]
    fn words_reach_the_guests_command_unchanged() {
        let args = ["it's", "a b", "$HOME", ""].map(str::to_owned);
        let command = GuestCommand {
            program: Path::new("/usr/bin/printf"),
            args: &[&["%s|".to_owned()], &args[..]].concat(),
            folder: Path::new("/tmp"),
            environment: &[("GREETING", "x 'y'".to_owned())],
        };
        let output = Command::new("sh").args(["-c", &script(&command)]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's|a b|$HOME||");
        let printing = GuestCommand {
            program: Path::new("/usr/bin/printenv"),
            args: &["GREETING".to_owned()],
            ..command
        };
        let output = Command::new("sh").args(["-c", &script(&printing)]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "x 'y'\n");
    }
}
