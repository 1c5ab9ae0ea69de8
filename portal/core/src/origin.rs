//! Whether a request comes from the portal's own page.

/// What a browser says about a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// `Sec-Fetch-Site` (Fetch Metadata). Pages cannot set it.
    pub site: Option<&'a str>,
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `X-XSRF-TOKEN`, as axios sends it.
    pub token: Option<&'a str>,
}

/// Why a request that writes is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// Another page sent it.
    #[error("the request does not come from a page of the portal")]
    Site,
    /// The body is of a type that a form of another page can send.
    #[error("the Content-Type must be application/json")]
    Type,
    /// The token is not the one of the session.
    #[error("the header X-XSRF-TOKEN must have the value of the cookie XSRF-TOKEN")]
    Token,
}

/// Checks a request that writes. `own` is the portal's origin, `token` the one of the session.
pub fn own(said: Said<'_>, own: &str, token: &str, has_body: bool) -> Result<(), Foreign> {
    let is_own = match said.site {
        Some(site) => site == "same-origin",
        // A browser without Fetch Metadata sends Origin with every request that writes.
        None => said.origin == Some(own),
    };
    if !is_own || said.origin.is_some_and(|origin| origin != own) {
        return Err(Foreign::Site);
    }
    let media = said.content_type.unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if has_body && !media.eq_ignore_ascii_case("application/json") {
        return Err(Foreign::Type);
    }
    if said.token != Some(token) {
        return Err(Foreign::Token);
    }
    Ok(())
}

/// The page to which a person goes after signing in, if it is one of the portal: a path of its own origin.
pub fn page(asked: Option<&str>) -> &str {
    let is_own = |path: &&str| {
        // Browsers take a backslash for a slash, and leave tabs and line ends out.
        path.starts_with('/')
            && !path.starts_with("//")
            && path.chars().all(|c| !c.is_control() && c != '\\')
    };
    asked.filter(is_own).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://portal.acme.io";
    const GOOD: Said<'_> = Said {
        site: Some("same-origin"),
        origin: Some(OWN),
        content_type: Some("application/json"),
        token: Some("t"),
    };

    #[test]
    fn the_portals_own_page_may_write() {
        let utf8 = Said {
            content_type: Some("Application/JSON; charset=utf-8"),
            ..GOOD
        };
        let old = Said { site: None, ..GOOD };
        let empty = Said {
            content_type: None,
            ..GOOD
        };
        assert_eq!(own(GOOD, OWN, "t", true), Ok(()));
        assert_eq!(own(utf8, OWN, "t", true), Ok(()));
        assert_eq!(own(old, OWN, "t", true), Ok(()));
        assert_eq!(own(empty, OWN, "t", false), Ok(()));
    }

    #[test]
    fn a_page_of_another_origin_cannot_write_in_the_name_of_its_visitor() {
        let sites = ["same-site", "cross-site", "none", ""];
        let foreign = sites.map(|site| Said {
            site: Some(site),
            ..GOOD
        });
        let evil = Said {
            origin: Some("https://evil.acme.io"),
            ..GOOD
        };
        let sandboxed = Said {
            site: None,
            origin: Some("null"),
            ..GOOD
        };
        let silent = Said {
            site: None,
            origin: None,
            ..GOOD
        };
        for said in foreign.into_iter().chain([evil, sandboxed, silent]) {
            assert_eq!(own(said, OWN, "t", true), Err(Foreign::Site), "{said:?}");
        }
    }

    #[test]
    fn a_body_that_a_form_can_send_is_refused() {
        for media in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
        ] {
            let said = Said {
                content_type: media,
                ..GOOD
            };
            assert_eq!(own(said, OWN, "t", true), Err(Foreign::Type), "{media:?}");
        }
    }

    #[test]
    fn a_request_without_the_sessions_token_is_refused() {
        for token in [None, Some(""), Some("T"), Some("t ")] {
            let said = Said { token, ..GOOD };
            assert_eq!(own(said, OWN, "t", true), Err(Foreign::Token), "{token:?}");
        }
    }

    #[test]
    fn nobody_is_sent_to_another_site_after_signing_in() {
        assert_eq!(page(Some("/workspaces?q=a")), "/workspaces?q=a");
        for evil in [
            "//evil.io",
            "/\\evil.io",
            "\\\\evil.io",
            "https://evil.io",
            "javascript:alert(1)",
            "/\t/evil.io",
            "/\r\nSet-Cookie: a=b",
            "evil",
            "",
        ] {
            assert_eq!(page(Some(evil)), "/", "{evil:?}");
        }
        assert_eq!(page(None), "/");
    }
}
