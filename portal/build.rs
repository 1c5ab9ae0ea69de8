//! Makes the folder of the app, so that the program compiles where the app was not built.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=web/dist");
    std::fs::create_dir_all("web/dist")
}
