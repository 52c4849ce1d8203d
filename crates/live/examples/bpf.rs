//! `make bpf`: compiles the BPF programs anew into `src/bpf/object`, from where the crate takes them.

#[path = "../tests/common/compile.rs"]
mod compile;

fn main() -> Result<(), String> {
    let clang = compile::clang()?;
    let version = compile::version(&clang)?;
    if version != compile::VERSION {
        eprintln!(
            "This is clang {version}; the objects in the repository are of clang {}, and a test compares them with what that makes.",
            compile::VERSION
        );
    }
    for name in ["lasthop", "chap"] {
        let bytes = compile::object(&clang, &format!("{name}.bpf.c"), &[])?;
        let path = compile::sources().join("object").join(format!("{name}.bpf.o"));
        std::fs::write(&path, &bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{name}.bpf.o: {} bytes, by clang {version}", bytes.len());
    }
    Ok(())
}
