//! The protocol of ssh's agent (draft-ietf-sshm-ssh-agent), as far as a login to a workspace needs it: one
//! identity, and its signatures.

/// The longest message in bytes.
pub const LONGEST: u32 = 256 * 1024;

const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// How many bytes the flags of a request for a signature have.
const FLAGS: usize = 4;

/// What ssh asks its agent.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Which keys there are.
    Identities,
    /// A signature.
    Sign {
        /// The public key or the certificate.
        key: &'a [u8],
        /// What is to be signed.
        data: &'a [u8],
    },
    /// Something else, which fails.
    Other,
}

/// Reads a message without its length.
pub fn request(message: &[u8]) -> Request<'_> {
    match message.split_first() {
        Some((&REQUEST_IDENTITIES, [])) => Request::Identities,
        Some((&SIGN_REQUEST, rest)) => sign(rest).unwrap_or(Request::Other),
        _ => Request::Other,
    }
}

fn sign(rest: &[u8]) -> Option<Request<'_>> {
    let (key, rest) = string(rest)?;
    let (data, flags) = string(rest)?;
    (flags.len() == FLAGS).then_some(Request::Sign { key, data })
}

/// The request for a signature, as a client of the agent sends it.
pub fn sign_request(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut message = vec![SIGN_REQUEST];
    put(&mut message, key);
    put(&mut message, data);
    message.extend([0; FLAGS]);
    framed(&message)
}

/// The answer with one identity.
pub fn identity(key: &[u8], comment: &str) -> Vec<u8> {
    let mut message = vec![IDENTITIES_ANSWER];
    message.extend(1_u32.to_be_bytes());
    put(&mut message, key);
    put(&mut message, comment.as_bytes());
    framed(&message)
}

/// The answer with a signature.
pub fn signed(signature: &[u8]) -> Vec<u8> {
    let mut message = vec![SIGN_RESPONSE];
    put(&mut message, signature);
    framed(&message)
}

/// The answer that something is not done.
pub fn failure() -> Vec<u8> {
    framed(&[FAILURE])
}

/// Reads a string (RFC 4251, section 5), and what follows.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

fn put(message: &mut Vec<u8>, bytes: &[u8]) {
    // Keys, signatures and names are far shorter than 4 GiB.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    message.extend(length.to_be_bytes());
    message.extend(bytes);
}

fn framed(message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(message.len() + 4);
    put(&mut framed, message);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_asks_for_its_keys_and_for_signatures() {
        assert_eq!(request(&[REQUEST_IDENTITIES]), Request::Identities);
        let (key, data) = (&b"key"[..], &b"data"[..]);
        let message = b"\x0d\0\0\0\x03key\0\0\0\x04data\0\0\0\0";
        assert_eq!(request(message), Request::Sign { key, data });
        assert_eq!(sign_request(key, data), framed(message));
    }

    #[test]
    fn a_message_that_is_cut_or_unknown_fails() {
        let whole = &sign_request(b"key", b"data")[4..];
        for end in 0..whole.len() {
            assert_eq!(request(&whole[..end]), Request::Other, "{end}");
        }
        let huge = [&[SIGN_REQUEST][..], &[0xff; 40]].concat();
        for message in [&huge[..], &[REQUEST_IDENTITIES, 0], &[17], &[27]] {
            assert_eq!(request(message), Request::Other);
        }
    }

    #[test]
    fn answers_have_their_lengths() {
        assert_eq!(failure(), [0, 0, 0, 1, FAILURE]);
        assert_eq!(signed(b"s"), [0, 0, 0, 6, SIGN_RESPONSE, 0, 0, 0, 1, b's']);
        let shown = identity(b"k", "c");
        let expected = [&[0, 0, 0, 15, IDENTITIES_ANSWER, 0, 0, 0, 1][..]];
        let strings = [0, 0, 0, 1, b'k', 0, 0, 0, 1, b'c'];
        assert_eq!(shown, [expected[0], &strings].concat());
    }
}
