//! Credentials as a Secret holds them: one profile in INI form, as AWS's own tools and upbound's
//! provider write it.

use std::fmt;

/// Long-lived or session credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticCredentials {
    /// `aws_access_key_id`.
    pub access_key_id: String,
    /// `aws_secret_access_key`.
    pub secret_access_key: String,
    /// `aws_session_token`.
    pub session_token: Option<String>,
}

/// Prints only the key's id, so that no log can hold the secret.
impl fmt::Debug for StaticCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCredentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// Why a profile cannot be used. No variant holds any text of the profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A line is neither a section, a comment nor `key = value`.
    #[error("line {0} is neither a [section], a comment nor key = value")]
    Line(usize),
    /// There is no `[default]` section.
    #[error("there is no [default] section")]
    NoDefault,
    /// A required key is missing.
    #[error("[default] has no {0}")]
    Missing(&'static str),
}

/// Reads the `[default]` profile.
pub fn parse_profile(text: &str) -> Result<StaticCredentials, ProfileError> {
    let (mut access, mut secret, mut token) = (None, None, None);
    let (mut in_default, mut seen_default) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            in_default = section.trim() == "default";
            seen_default |= in_default;
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(ProfileError::Line(index + 1))?;
        if in_default {
            let value = Some(value.trim().to_owned()).filter(|v| !v.is_empty());
            match key.trim() {
                "aws_access_key_id" => access = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    if !seen_default {
        return Err(ProfileError::NoDefault);
    }
    Ok(StaticCredentials {
        access_key_id: access.ok_or(ProfileError::Missing("aws_access_key_id"))?,
        secret_access_key: secret.ok_or(ProfileError::Missing("aws_secret_access_key"))?,
        session_token: token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_as_aws_writes_it_is_understood() {
        let text = "# made by hand\n[other]\naws_access_key_id = no\n\n[default]\n\
                    aws_access_key_id=AKIA1\naws_secret_access_key = s3cr3t=\n\
                    aws_session_token = t\nregion = us-east-1\n";
        let read = parse_profile(text).unwrap();
        assert_eq!(read.access_key_id, "AKIA1");
        assert_eq!(read.secret_access_key, "s3cr3t=");
        assert_eq!(read.session_token.as_deref(), Some("t"));
    }

    #[test]
    fn an_error_names_what_is_missing_and_never_the_text() {
        for (text, error) in [
            ("aws_access_key_id = a", ProfileError::NoDefault),
            ("[default]\nhunter2", ProfileError::Line(2)),
            (
                "[default]\naws_access_key_id = a",
                ProfileError::Missing("aws_secret_access_key"),
            ),
            (
                "[default]\naws_secret_access_key = hunter2",
                ProfileError::Missing("aws_access_key_id"),
            ),
        ] {
            let found = parse_profile(text).unwrap_err();
            assert_eq!(found, error);
            assert!(!found.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn debugging_never_prints_the_secret() {
        let secret = StaticCredentials {
            access_key_id: "AKIA1".into(),
            secret_access_key: "hunter2".into(),
            session_token: Some("hunter3".into()),
        };
        let printed = format!("{secret:?}");
        assert!(printed.contains("AKIA1") && !printed.contains("hunter"));
    }
}
