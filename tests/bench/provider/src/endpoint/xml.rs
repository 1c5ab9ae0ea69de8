//! Answers in EC2's XML, with EC2's indentation.

use std::fmt::{Display, Write as _};

use provider_aws::Tags;

/// A document that is being written.
#[derive(Debug, Default)]
pub(crate) struct Xml {
    text: String,
    depth: usize,
}

const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

impl Xml {
    /// The answer to an operation.
    pub(crate) fn answer(operation: &str, content: impl FnOnce(&mut Self)) -> String {
        let mut xml = Self {
            text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned(),
            depth: 1,
        };
        // Writing to a String never fails. This holds for all writes in this file.
        let _ = writeln!(xml.text, "<{operation}Response xmlns=\"{NAMESPACE}\">");
        xml.value("requestId", "00000000-0000-0000-0000-000000000000");
        content(&mut xml);
        let _ = write!(xml.text, "</{operation}Response>");
        xml.text
    }

    /// The answer with an error code.
    pub(crate) fn error(code: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}\
             </Code><Message>Refused.</Message></Error></Errors><RequestID>0</RequestID></Response>"
        )
    }

    /// The answer of an operation that has no result: the element `return` with the value `true`.
    pub(crate) fn done(operation: &str) -> String {
        Self::answer(operation, |xml| xml.value("return", "true"))
    }

    pub(crate) fn element(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        self.indent();
        let _ = writeln!(self.text, "<{name}>");
        self.depth += 1;
        content(self);
        self.depth -= 1;
        self.indent();
        let _ = writeln!(self.text, "</{name}>");
    }

    pub(crate) fn value(&mut self, name: &str, value: impl Display) {
        self.indent();
        let _ = write!(self.text, "<{name}>");
        let begun = self.text.len();
        let _ = write!(self.text, "{value}");
        if self.text[begun..].contains(['<', '&']) {
            let escaped = self.text[begun..]
                .replace('&', "&amp;")
                .replace('<', "&lt;");
            self.text.replace_range(begun.., &escaped);
        }
        let _ = writeln!(self.text, "</{name}>");
    }

    pub(crate) fn values(&mut self, values: &[(&str, &str)]) {
        for (name, value) in values {
            self.value(name, value);
        }
    }

    /// An element with one element `item` for each item.
    pub(crate) fn set<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut content: impl FnMut(&mut Self, T),
    ) {
        self.element(name, |xml| {
            for item in items {
                xml.element("item", |xml| content(xml, item));
            }
        });
    }

    pub(crate) fn tags(&mut self, tags: &Tags) {
        self.set("tagSet", tags, |xml, (key, value)| {
            xml.values(&[("key", key), ("value", value)]);
        });
    }

    fn indent(&mut self) {
        const SPACES: &str = "                                                            ";
        let width = (4 * self.depth).min(SPACES.len());
        self.text.push_str(&SPACES[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_break_the_document() {
        let text = Xml::answer("A", |xml| xml.value("b", "1 < 2 & 3"));
        assert!(text.contains("<b>1 &lt; 2 &amp; 3</b>"), "{text}");
    }
}
