//! temporary
fn main() {
    match retry_agent::kernel::Kernel::verify() {
        Ok(v) => {
            for p in v {
                println!("{} {} {}", p.program, p.verified_instructions, p.jited_bytes)
            }
        }
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1)
        }
    }
}
