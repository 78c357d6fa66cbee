//! What qemu boots: the kernel, uncompressed where that is possible, and an initramfs that holds busybox, the
//! modules for sharing files, and our process 1.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use super::kernel::Kernel;
use crate::{host, process};

/// Process 1 of the guest.
const INIT: &str = include_str!("init.sh");

/// Modules that reach the machine's files and carry the output; the cloud kernels have none of them built in.
const MODULES: [&str; 4] = ["virtio_pci", "virtio_console", "virtiofs", "overlay"];

/// The kernel as qemu boots it fastest: an uncompressed one starts directly (PVH), which saves seconds of
/// decompression without hardware help.
///
/// # Errors
/// When the kernel's file cannot be read or written.
pub fn bootable(kernel: &Kernel) -> Result<PathBuf> {
    let plain = kernel.folder.join("vmlinux");
    let packed = kernel.folder.join("vmlinuz");
    if plain.exists() {
        return Ok(plain);
    }
    let image = fs::read(&packed).with_context(|| format!("cannot read {}", packed.display()))?;
    let Some((program, payload)) = payload(&image) else { return Ok(packed) };
    let part = kernel.folder.join("payload");
    fs::write(&part, payload).context("cannot write the kernel's payload")?;
    let file = File::open(&part).context("cannot read the kernel's payload")?;
    let output = process::command(program).args(["-qdc"]).stdin(file).output();
    fs::remove_file(&part).context("cannot remove the kernel's payload")?;
    match output {
        // The decompressors complain about bytes after the end, so the result speaks for itself.
        Ok(output) if output.stdout.starts_with(b"\x7fELF") => {
            fs::write(&plain, output.stdout).context("cannot write the uncompressed kernel")?;
            Ok(plain)
        }
        _ => Ok(packed),
    }
}

/// The compressed kernel inside a bzImage and the program that unpacks it.
///
/// *Source*: Documentation/arch/x86/boot.rst: `setup_sects` at 0x1f1, `payload_offset` at 0x248 (from the first
/// byte of protected-mode code), `payload_length` at 0x24c; the last four bytes are the unpacked length.
fn payload(image: &[u8]) -> Option<(&'static str, &[u8])> {
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let code = (usize::from(*image.get(0x1f1)?) + 1) * 512;
    let start = code.checked_add(word(0x248)?)?;
    let end = start.checked_add(word(0x24c)?.checked_sub(4)?)?;
    let payload = image.get(start..end)?;
    let program = match payload.get(..4)? {
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0xfd, b'7', b'z', b'X'] => "xz",
        [0x02, 0x21, 0x4c, 0x18] => "lz4",
        _ => return None,
    };
    Some((program, payload))
}

/// Builds the initramfs for a kernel.
///
/// # Errors
/// When a module or busybox is missing, or a tool fails.
pub fn initramfs(kernel: &Kernel) -> Result<PathBuf> {
    let archive = kernel.folder.join("initramfs");
    let tree = kernel.folder.join("initramfs.tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    for folder in ["bin", "modules", "proc", "sys", "dev", "host", "layer", "root-fs"] {
        fs::create_dir_all(tree.join(folder)).with_context(|| format!("cannot make {}", tree.display()))?;
    }
    let busybox = host::find_command("busybox").context("busybox is missing")?;
    fs::copy(busybox, tree.join("bin/busybox")).context("cannot copy busybox")?;
    let init = tree.join("init");
    fs::write(&init, INIT).context("cannot write the guest's process 1")?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).context("cannot make it executable")?;
    let order = modules(kernel, &tree)?;
    fs::write(tree.join("module-order"), order).context("cannot write the modules' order")?;
    let output = File::create(&archive).with_context(|| format!("cannot write {}", archive.display()))?;
    let mut pack = process::command("sh");
    pack.current_dir(&tree).args(["-c", "find . | cpio --quiet -o -H newc"]).stdout(Stdio::from(output));
    process::run(&mut pack).context("cannot pack the initramfs")?;
    Ok(archive)
}

/// Unpacks the modules and what they depend on; gives their paths in the guest in the order of loading.
fn modules(kernel: &Kernel, tree: &Path) -> Result<String> {
    let mut order = String::new();
    for module in MODULES {
        let listing =
            process::capture(process::system_command("modprobe").arg("-d").arg(&kernel.folder).args([
                "-S",
                &kernel.version,
                "--show-depends",
                module,
            ]))?;
        for file in listing.lines().filter_map(|line| line.strip_prefix("insmod ")).map(str::trim) {
            let (name, unpack) = unpacked_name(file)?;
            let line = format!("/modules/{name}\n");
            if order.contains(&line) {
                continue;
            }
            let target = File::create(tree.join("modules").join(name)).context("cannot write a module")?;
            process::run(
                process::command(unpack[0]).args(&unpack[1..]).arg(file).stdout(Stdio::from(target)),
            )?;
            order += &line;
        }
    }
    Ok(order)
}

/// A module file's name without its compression, and the command that prints it uncompressed.
fn unpacked_name(file: &str) -> Result<(&str, &'static [&'static str])> {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name.rsplit_once('.') {
        Some((stem, "xz")) => Ok((stem, &["xz", "-dc"])),
        Some((stem, "zst")) => Ok((stem, &["zstd", "-qdc"])),
        Some((_, "ko")) => Ok((name, &["cat"])),
        _ => bail!("{file} is compressed in an unknown way"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage with one setup sector and the given payload, which its header calls `length` bytes long.
    fn image(payload: &[u8], length: u32) -> Vec<u8> {
        let mut image = vec![0; 1024];
        image[0x1f1] = 1;
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
        image.extend([0; 16]);
        image.extend(payload);
        image
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        let bytes = [0x28, 0xb5, 0x2f, 0xfd, 7, 7, 1, 0, 0, 0];
        assert_eq!(payload(&image(&bytes, 10)), Some(("zstd", &bytes[..6])));
    }

    #[test]
    fn what_is_no_kernel_has_no_payload() {
        for (case, bytes) in [
            ("empty", Vec::new()),
            ("short", vec![0; 600]),
            ("unknown compression", image(b"abcdefgh", 8)),
            ("a length past the end", image(&[0x28, 0xb5, 0x2f, 0xfd], 4_000)),
            ("a length below the trailer", image(&[0x28, 0xb5, 0x2f, 0xfd], 3)),
        ] {
            assert_eq!(payload(&bytes), None, "{case}");
        }
    }

    #[test]
    fn modules_are_unpacked_by_their_ending() {
        assert_eq!(unpacked_name("/lib/a/fuse.ko.xz").unwrap(), ("fuse.ko", &["xz", "-dc"][..]));
        assert_eq!(unpacked_name("/lib/a/fuse.ko").unwrap(), ("fuse.ko", &["cat"][..]));
        assert!(unpacked_name("/lib/a/fuse.ko.br").is_err());
    }
}
