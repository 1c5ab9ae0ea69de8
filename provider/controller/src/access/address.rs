//! The address of an endpoint: what two URLs must have in common to reach the same server.

use std::str::FromStr;

use http::Uri;

/// Scheme, host and port of a URL. The SDK reads an endpoint with the same parser, so both see the
/// same host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    /// In lower case.
    host: String,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// The text is no URL of a server.
    #[error("write scheme, host and port, such as https://ec2.example.org:8443")]
    Url,
    /// The text names more than a server.
    #[error("leave out what follows the port: only scheme, host and port are compared")]
    Path,
}

impl Address {
    /// An address of the allow-list, which must not promise to compare more than it does.
    ///
    /// # Errors
    ///
    /// If the text is no URL, or has a user, a path or a query.
    pub fn listed(text: &str) -> Result<Self, NoAddress> {
        let address = text.parse()?;
        let uri: Uri = text.parse().map_err(|_| NoAddress::Url)?;
        let has_user = uri.authority().is_some_and(|a| a.as_str().contains('@'));
        if has_user || uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(NoAddress::Path);
        }
        Ok(address)
    }
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let uri: Uri = text.parse().map_err(|_| NoAddress::Url)?;
        let (scheme, usual) = match uri.scheme_str() {
            Some("http") => (Scheme::Http, 80),
            Some("https") => (Scheme::Https, 443),
            _ => return Err(NoAddress::Url),
        };
        let authority = uri.authority().ok_or(NoAddress::Url)?;
        let host = authority.host();
        let port = match (authority.port_u16(), authority.as_str().ends_with(host)) {
            (Some(port), _) => port,
            (None, true) => usual,
            // A port that is no number of a port.
            (None, false) => return Err(NoAddress::Url),
        };
        if host.is_empty() {
            return Err(NoAddress::Url);
        }
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listed(list: &str, url: &str) -> bool {
        let list = Address::listed(list).unwrap();
        url.parse::<Address>().is_ok_and(|address| address == list)
    }

    #[test]
    fn a_listed_server_is_known_however_its_url_is_written() {
        for (list, url) in [
            ("https://ec2.example.org", "https://ec2.example.org/"),
            (
                "https://ec2.example.org",
                "https://EC2.Example.org:443/path",
            ),
            ("http://10.0.0.7:4566", "http://10.0.0.7:4566"),
            ("http://10.0.0.7:80", "http://10.0.0.7"),
            ("http://[fd00::1]:4566", "http://[FD00::1]:4566/?query"),
        ] {
            assert!(is_listed(list, url), "{list} lists {url}");
        }
    }

    #[test]
    fn another_server_is_not_taken_for_the_listed_one() {
        let list = "https://ec2.example.org";
        for url in [
            "http://ec2.example.org",
            "https://ec2.example.org:8443",
            "https://ec2.example.org.evil.net",
            "https://ec2.example.org@evil.net",
            "https://ec2.example.org:443@evil.net/",
            "https://evil.net/https://ec2.example.org",
            "https://evil.net#ec2.example.org",
            "https://evil.net\\@ec2.example.org",
            "https://evil.net:99999",
            "https://ec2.example.org:99999",
            "https://ec2.example.org:",
            "https://ec2.example.org.",
            "https://ec2.example",
            "file://ec2.example.org",
            "ec2.example.org",
            "",
        ] {
            assert!(!is_listed(list, url), "{list} does not list {url}");
        }
    }

    #[test]
    fn a_list_promises_no_more_than_is_compared() {
        for text in [
            "https://ec2.example.org/team-a",
            "https://ec2.example.org/?team=a",
            "https://me@ec2.example.org",
        ] {
            assert_eq!(Address::listed(text), Err(NoAddress::Path), "{text}");
        }
        for text in ["ec2.example.org", "*", "https://", "ftp://ec2.example.org"] {
            assert_eq!(Address::listed(text), Err(NoAddress::Url), "{text}");
        }
    }
}
