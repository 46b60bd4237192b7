use serde_json::{Value, json};

use crate::error::ParseError;
use crate::media::{MAX_BYTES, Media, MediaError};
use crate::wire::Format;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

#[track_caller]
fn check(media_type: &str, bytes: &[u8], expected: Result<&str, MediaError>) {
    let made = Media::bytes(media_type, bytes);
    assert_eq!(
        made.clone().map(|made| made.media_type().to_owned()),
        expected.map(str::to_owned).map_err(ParseError::from),
        "{media_type}"
    );
    let Ok(made) = made else { return };
    let again = Media::base64(media_type, made.data().unwrap()).unwrap();
    assert_eq!((&again, again.size()), (&made, bytes.len()));
    let saved = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<Media>(&saved).unwrap(), made);
}

#[test]
fn a_type_is_that_of_the_content() {
    let lie = |found| Err(MediaError::Mismatch { found });
    check("image/png", PNG, Ok("image/png"));
    check("IMAGE/X-PNG", PNG, Ok("image/png"));
    check("application/pdf", PDF, Ok("application/pdf"));
    check("application/pdf", &[b"\n\n".as_slice(), PDF].concat(), Ok("application/pdf"));
    check("audio/x-wav", WAV, Ok("audio/wav"));
    check("audio/mpeg", b"\xff\xf3\x84\xc4", Ok("audio/mpeg"));
    check("text/plain; charset=utf-8", "größe".as_bytes(), Ok("text/plain; charset=utf-8"));
    check("text/html", b"<!DOCTYPE html><p>a", Ok("text/html"));
    check("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>", Ok("image/svg+xml"));
    check("application/vnd.acme", b"\x01\x02", Ok("application/vnd.acme"));

    check("image/png", PDF, lie(Some("application/pdf")));
    check("image/jpeg", PNG, lie(Some("image/png")));
    check("image/png", b"text", lie(None));
    check("application/pdf", PNG, lie(Some("image/png")));
    check("application/pdf", b"PDF", lie(None));
    check("text/plain", PNG, lie(Some("image/png")));
    check("text/plain", b"\xff\x00", lie(None));
    check("application/json", PDF, lie(Some("application/pdf")));
    check("audio/mpeg", PNG, lie(Some("image/png")));
    check("application/octet-stream", PNG, lie(Some("image/png")));
    check("image/svg+xml", PNG, lie(Some("image/png")));
    check("video/mp4", b"PK\x03\x04", lie(Some("application/zip")));
}

#[test]
fn a_type_has_the_syntax_of_one() {
    for bad in [
        "",
        "png",
        "image/",
        "/png",
        "image/png/x",
        "image /png",
        "imäge/png",
        "image/png\r\nx: y",
        "a/b;\n",
        "a/b; x,y",
    ] {
        check(bad, PNG, Err(MediaError::Type));
    }
    check(&format!("image/{}", "x".repeat(300)), PNG, Err(MediaError::Type));
}

#[test]
fn sizes_are_limited_before_anything_is_copied() {
    let picture = vec![0; 50 << 20];
    let limit = MAX_BYTES;
    assert_eq!(Media::bytes("image/png", &picture), Err(MediaError::TooLarge { limit }.into()));
    assert_eq!(Media::file("a.png", &picture), Err(MediaError::TooLarge { limit }.into()));
    let encoded = "A".repeat(67 << 20);
    let saved = format!(r#"{{"media_type":"image/png","source":{{"base64":"{encoded}"}}}}"#);
    let error = serde_json::from_str::<Media>(&saved).unwrap_err().to_string();
    assert!(error.starts_with("the file is larger than the limit of 20971520 bytes"), "{error}");
    assert_eq!(Media::base64("image/png", encoded), Err(MediaError::TooLarge { limit }.into()));
    assert_eq!(Media::bytes("image/png", b""), Err(MediaError::Empty.into()));

    let mut largest = vec![0; MAX_BYTES];
    largest[..PNG.len()].copy_from_slice(PNG);
    assert_eq!(Media::bytes("image/png", &largest).map(|media| media.size()), Ok(MAX_BYTES));
}

#[test]
fn a_url_is_one_that_a_provider_may_fetch() {
    for good in ["https://example.com/a.png?sig=1#x", "HTTP://example.com", "http://[::1]/a"] {
        assert_eq!(Media::url("image/png", good).unwrap().link(), Some(good));
    }
    let long = format!("https://example.com/{}", "a".repeat(8 << 10));
    for bad in [
        "",
        "javascript:alert(1)",
        "javascript://example.com/%0Aalert(1)",
        "file:///etc/passwd",
        "data:image/png;base64,iVBORw0KGgo=",
        "ftp://example.com/a",
        "//example.com/a",
        "https://",
        "https:///a",
        "https://example.com/a b",
        "https://example.com/\n",
        &long,
    ] {
        assert_eq!(Media::url("image/png", bad), Err(MediaError::Url.into()), "{bad}");
    }
}

#[test]
fn an_id_belongs_to_one_provider() {
    let stored = Media::id("application/pdf", Format::Anthropic, "file_1").unwrap();
    assert_eq!(stored.id_at(Format::Anthropic), Some("file_1"));
    assert_eq!(stored.id_at(Format::Gemini), None);
    for bad in ["", "a b", "ä", &"a".repeat(600)] {
        assert_eq!(Media::id("application/pdf", Format::Anthropic, bad), Err(MediaError::Id.into()));
    }
    let saved = serde_json::to_value(&stored).unwrap();
    assert_eq!(serde_json::from_value::<Media>(saved).unwrap(), stored);
}

#[test]
fn a_saved_document_is_checked_like_a_new_one() {
    let read = |document: Value| serde_json::from_value::<Media>(document).map_err(|error| error.to_string());
    let base64 = |data: &str| json!({"media_type": "image/png", "source": {"base64": data}});
    assert!(read(base64("iVBORw0KGgo=")).is_ok());
    assert_eq!(
        read(base64("JVBERi0xLjc=")).unwrap_err(),
        MediaError::Mismatch { found: Some("application/pdf") }.to_string()
    );
    for bad in ["iVBORw0KGgo", "iVBORw0K\nGgo=", "iVBORw0KGg-=", "=", "===="] {
        assert!(read(base64(bad)).is_err(), "{bad}");
    }
    let url = json!({"media_type": "image/png", "source": {"url": "file:///a"}});
    assert_eq!(read(url).unwrap_err(), MediaError::Url.to_string());
    let name =
        json!({"media_type": "image/png", "source": {"base64": "iVBORw0KGgo="}, "name": "../../etc/pass\u{7}wd"});
    assert_eq!(read(name).unwrap().name(), Some("passwd"));
}

#[test]
fn files_are_known_by_their_content() {
    let file = |name: &str, bytes: &[u8]| Media::file(name, bytes).map(|media| media.media_type().to_owned());
    assert_eq!(file("a.txt", PNG).as_deref(), Ok("image/png"));
    assert_eq!(file("a", PDF).as_deref(), Ok("application/pdf"));
    assert_eq!(file("a.md", b"# Title").as_deref(), Ok("text/plain"));
    assert_eq!(file("a.bin", b"\x00\xff"), Err(MediaError::Mismatch { found: None }.into()));
    assert_eq!(file("a.bin", b""), Err(MediaError::Empty.into()));
}

#[test]
fn nothing_of_the_content_is_printed() {
    let media = Media::bytes("text/plain", b"secret").unwrap().with_name("secret.txt");
    let printed = format!("{media:?} {:?}", Media::url("text/plain", "https://example.com/?sig=secret").unwrap());
    assert!(!printed.contains("secret") && !printed.contains("c2Vj"), "{printed}");
}

/// The name that a person reads must be the saved name.
#[test]
fn a_name_has_no_invisible_characters() {
    let name = |name: &str| Media::bytes("image/png", PNG).unwrap().with_name(name).name().map(str::to_owned);
    assert_eq!(name("plan\u{202e}gnp.exe").as_deref(), Some("plangnp.exe"));
    assert_eq!(name("a\u{200b}b\u{2066}c\u{e0041}.png").as_deref(), Some("abc.png"));
    assert_eq!(name("\u{202e}\u{200b}"), None);
}
