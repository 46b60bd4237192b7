use super::*;

#[test]
fn the_metadata_of_a_resource_lies_before_its_path() {
    let at = |resource: &str| metadata_of(resource).map(|(address, _)| address);
    let expected = Some("https://a.example/.well-known/oauth-protected-resource/mcp".to_owned());
    assert_eq!(at("https://a.example/mcp"), expected);
    let root = Some("http://127.0.0.1:80/.well-known/oauth-protected-resource".to_owned());
    assert_eq!((at("http://127.0.0.1:80"), at("http://127.0.0.1:80/")), (root.clone(), root));
    for wrong in [
        "",
        "a.example/mcp",
        "ftp://a/x",
        "https://",
        "https:///x",
        "https://a/x?y",
        "https://a/#x",
        "https://u@a/",
        "https://a/\"x",
        "https://a/x y",
        "https://a/\u{e4}",
    ] {
        assert_eq!(at(wrong), None, "{wrong}");
    }
}

#[test]
fn one_bearer_token_is_read() {
    let read = |values: &[&str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        token(&headers).map(|token| token.expose().clone())
    };
    assert_eq!(read(&["Bearer abc"]), Some("abc".to_owned()));
    assert_eq!(read(&["bearer  abc "]), Some("abc".to_owned()));
    for wrong in
        [&[][..], &["abc"], &["Basic abc"], &["Bearer"], &["Bearer "], &["Bearer a b"], &["Bearer a", "Bearer b"]]
    {
        assert_eq!(read(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_scope_is_one_word_that_a_header_can_hold() {
    for scope in ["tools", "orders:write", "https://a.example/scope", "!", "~", "#[]^"] {
        assert!(is_scope(scope), "{scope}");
    }
    for scope in ["", "a b", "a\"b", "a\\b", "a\n", "\u{e4}", "a\u{7f}"] {
        assert!(!is_scope(scope), "{scope:?}");
    }
}
