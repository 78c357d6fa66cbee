//! `verify`: what the kernel's verifier makes of every program.
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::kernel::{Kernel, check_privileges};

pub(super) fn run(json: bool) -> Result<ExitCode> {
    check_privileges()?;
    let programs = Kernel::verify()?;
    if json {
        println!("{}", serde_json::to_string(&programs).context("cannot write JSON")?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:20} {:>12} {:>12}", "program", "instructions", "native bytes");
    for program in programs {
        println!("{:20} {:>12} {:>12}", program.program, program.verified_instructions, program.jited_bytes);
    }
    Ok(ExitCode::SUCCESS)
}
