//! Entry point.
fn main() {
    for file in garage_operator::api::crd::files().unwrap_or_default() {
        println!("---\n{}", file.yaml);
    }
}
