//! AWS Signature Version 4, implemented from its description ("Create a signed AWS API request")
//! without code of the agent.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::server::Request;

/// HMAC (RFC 2104) for keys that are not longer than a block of SHA-256.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        for (padded, key) in block.iter_mut().zip(key) {
            *padded ^= key;
        }
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text);
    let outer = Sha256::new().chain_update(pad(0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The header `Authorization` that a request must have, for the headers that it lists as signed.
pub fn authorization(request: &Request, access: &str, secret: &str, scope: [&str; 2]) -> String {
    let given = request.header("authorization").unwrap();
    let (_, signed) = given.split_once("SignedHeaders=").unwrap();
    let (signed, _) = signed.split_once(',').unwrap();
    let headers = signed.split(';').fold(String::new(), |mut text, name| {
        writeln!(text, "{name}:{}", request.header(name).unwrap()).unwrap();
        text
    });
    let body = hex(&Sha256::digest(&request.body));
    let canonical = format!(
        "{}\n{}\n\n{headers}\n{signed}\n{body}",
        request.method, request.path
    );
    let time = request.header("x-amz-date").unwrap();
    let [region, service] = scope;
    let scope = format!("{}/{region}/{service}/aws4_request", &time[..8]);
    let digest = hex(&Sha256::digest(canonical));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
    let key = [&time[..8], region, service, "aws4_request"]
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| {
            hmac(&key, part.as_bytes())
        });
    let signature = hex(&hmac(&key, text.as_bytes()));
    format!(
        "AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
}
