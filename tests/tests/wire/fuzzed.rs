//! The checks of the fuzz targets, on the inputs that fuzzing found.

#[allow(unreachable_pub, reason = "it is a separate crate, too")]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

use std::fs;
use std::path::{Path, PathBuf};

use tool_runtime::wire::Format;

type Target = fn(&[u8]);

/// As the files in `fuzz_targets` run them: all but the decoders take text only.
fn text(input: &[u8], run: impl Fn(&str)) {
    if let Ok(text) = std::str::from_utf8(input) {
        run(text);
    }
}

const TARGETS: [(&str, Target); 12] = [
    ("anthropic", |input| fuzz::every_cut_is_the_same(Format::Anthropic, input)),
    ("arguments", |input| text(input, fuzz::arguments_agree_with_serde_json)),
    ("chat", fuzz::chat::only_what_waits_is_answered),
    ("frames", |input| text(input, fuzz::a_frame_is_json_or_malformed)),
    ("gemini", |input| fuzz::every_cut_is_the_same(Format::Gemini, input)),
    ("lock", |input| text(input, fuzz::lock::locks_are_compared)),
    ("ollama", |input| fuzz::every_cut_is_the_same(Format::Ollama, input)),
    ("openai_chat", |input| fuzz::every_cut_is_the_same(Format::OpenAiChat, input)),
    ("openai_responses", |input| fuzz::every_cut_is_the_same(Format::OpenAiResponses, input)),
    ("pick", |input| text(input, fuzz::pick::picks_are_sound)),
    ("redact", |input| text(input, fuzz::redact::only_what_is_listed_is_shown)),
    ("repair", |input| text(input, fuzz::repair::repairs_invent_nothing)),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn what_fuzzing_found_holds() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    for folder in files(&fuzz.join("cases")) {
        let target = folder.file_name().unwrap().to_str().unwrap();
        let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap_or_else(|| panic!("{target}"));
        for case in files(&folder) {
            println!("{}", case.display());
            run(&fs::read(&case).unwrap());
        }
    }
    // `TARGETS` has every target of the folder.
    let written: Vec<_> = files(&fuzz.join("fuzz_targets"));
    assert_eq!(
        written.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect::<Vec<_>>(),
        TARGETS.map(|(name, _)| name)
    );
}
