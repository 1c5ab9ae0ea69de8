//! What AWS says in an error, in a form that does not change from call to call.

/// EC2's message without the parts that change from call to call: a condition's message must not
/// flap. A denial carries a different encoded message each time.
pub fn stable_message(message: &str) -> String {
    let cut = [
        ("", "Encoded authorization failure message"),
        ("", "(Service:"),
        ("", "Request ID"),
        // EC2 names the zones that have capacity after these words.
        ("", "You can currently get"),
        ("", "Our system will be working"),
        ("Token expired", ": current date/time"),
        ("Signature expired", ": "),
        ("Request has expired.", " "),
    ]
    .iter()
    .filter_map(|(kept, dropped)| {
        let at = message.find(&format!("{kept}{dropped}"))?;
        Some(at + kept.len())
    })
    .min()
    .unwrap_or(message.len());
    without_session(message[..cut].trim())
}

/// The text without the session's name in the ARN of an assumed role: sessions change with their
/// credentials.
fn without_session(text: &str) -> String {
    const ROLE: &str = ":assumed-role/";
    let session = text.find(ROLE).and_then(|at| {
        let role = at + ROLE.len();
        let begin = role + text[role..].find('/')?;
        let end = text[begin..].find(char::is_whitespace);
        Some((begin, end.map_or(text.len(), |end| begin + end)))
    });
    match session {
        Some((begin, end)) => format!("{}{}", &text[..begin], &text[end..]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_reads_the_same_every_time() {
        let said = "You are not authorized to perform this operation. \
                    Encoded authorization failure message: 4wTX…";
        assert_eq!(
            stable_message(said),
            "You are not authorized to perform this operation."
        );
        let said = "Token expired: current date/time 1795267200 must be before the \
                    expiration date/time 1795263600";
        assert_eq!(stable_message(said), "Token expired");
        let said = "Signature expired: 20261121T120000Z is now earlier than 20261121T121500Z";
        assert_eq!(stable_message(said), "Signature expired");
        let said = "Request has expired. Timestamp date is 2026-11-21T12:00:00Z.";
        assert_eq!(stable_message(said), "Request has expired.");
        assert_eq!(stable_message("No capacity."), "No capacity.");
        let said = "User: arn:aws:sts::111111111111:assumed-role/pools/1795267200 is not \
                    authorized to perform: ec2:RunInstances";
        let kept = "User: arn:aws:sts::111111111111:assumed-role/pools is not authorized to \
                    perform: ec2:RunInstances";
        assert_eq!(stable_message(said), kept);
    }

    #[test]
    fn a_lack_of_capacity_reads_the_same_whichever_zones_have_some() {
        for others in ["us-east-1a", "us-east-1b, us-east-1c"] {
            let said = format!(
                "We currently do not have sufficient g4dn.xlarge capacity in the Availability Zone \
                 you requested (us-east-1d). Our system will be working on provisioning additional \
                 capacity. You can currently get g4dn.xlarge capacity by not specifying an \
                 Availability Zone in your request or choosing {others}."
            );
            let kept = "We currently do not have sufficient g4dn.xlarge capacity in the \
                        Availability Zone you requested (us-east-1d).";
            assert_eq!(stable_message(&said), kept);
        }
    }
}
