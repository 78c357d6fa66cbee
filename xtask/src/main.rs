//! The project's own commands. See `cargo xtask --help`.
fn main() {}
