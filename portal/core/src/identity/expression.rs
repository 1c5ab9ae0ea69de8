//! Expressions of an `AuthenticationConfiguration`, in Kubernetes' Common Expression Language (CEL).
//!
//! The API server and the portal must give one person one name. So the portal takes the functions whose results are
//! the same in both, and refuses an expression with another one when it starts. An expression that fails for a token
//! refuses the token, as in the API server.

use std::collections::HashMap;
use std::sync::Arc;

use cel::{Context, Env, ExecutionError, Program};
use serde::Deserialize;
use serde_json::Value;

/// The functions that an expression may call. Operators and macros are not listed.
///
/// Conversions such as `string` are left out: cel-go writes the number 12345678 as `1.2345678e+07`.
const FUNCTIONS: [&str; 18] = [
    "charAt",
    "contains",
    "endsWith",
    "hasValue",
    "indexOf",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "or",
    "orValue",
    "replace",
    "size",
    "split",
    "startsWith",
    "substring",
    "trim",
    "upperAscii",
];

/// An expression, parsed.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Expression {
    text: String,
    program: Arc<Program>,
}

/// Why the portal does not start with an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no CEL.
    #[error("the expression `{text}` is no CEL: {problem}")]
    Syntax {
        /// The expression.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// It calls a function that the portal does not have.
    #[error(
        "the expression `{text}` calls `{function}`, which the portal does not evaluate as the \
         API server does: leave it out"
    )]
    Function {
        /// The expression.
        text: String,
        /// The function.
        function: String,
    },
    /// It has an escaped name.
    #[error(
        "the expression `{text}` has a name with two underscores, which the portal does not \
         unescape as the API server does: write claims[\"name\"]"
    )]
    Escaped {
        /// The expression.
        text: String,
    },
}

/// Why an expression has no result for a token. The values of the token are not in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// Something is missing in the token.
    #[error("there is no `{0}`")]
    Missing(String),
    /// The result is of another type.
    #[error("its result is not {0}")]
    Type(&'static str),
    /// The evaluation failed.
    #[error("it has no result for this token")]
    Other,
}

impl Expression {
    /// What is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the expression has a word, which may be the name of a claim.
    #[must_use]
    pub fn mentions(&self, word: &str) -> bool {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        self.text
            .split(|letter| !is_part(letter))
            .any(|part| part == word)
    }

    /// The result, which must be a text.
    ///
    /// # Errors
    ///
    /// The expression fails, or gives something else.
    pub fn string(&self, variable: &str, value: &Value) -> Result<String, Failed> {
        match self.evaluate(variable, value)? {
            cel::Value::String(text) => Ok(text.to_string()),
            _ => Err(Failed::Type("a text")),
        }
    }

    /// The result, which must be a text, a list of texts, or null. Empty texts are left out.
    ///
    /// # Errors
    ///
    /// The expression fails, or gives something else.
    pub fn strings(&self, variable: &str, value: &Value) -> Result<Vec<String>, Failed> {
        let of = |value: &cel::Value| match value {
            cel::Value::String(text) => Ok(text.to_string()),
            _ => Err(Failed::Type("a text or a list of texts")),
        };
        let found: Vec<String> = match self.evaluate(variable, value)? {
            cel::Value::Null => Vec::new(),
            cel::Value::List(all) => all.iter().map(of).collect::<Result<_, _>>()?,
            one => vec![of(&one)?],
        };
        Ok(found.into_iter().filter(|text| !text.is_empty()).collect())
    }

    /// The result, which must be true or false.
    ///
    /// # Errors
    ///
    /// The expression fails, or gives something else.
    pub fn holds(&self, variable: &str, value: &Value) -> Result<bool, Failed> {
        match self.evaluate(variable, value)? {
            cel::Value::Bool(holds) => Ok(holds),
            _ => Err(Failed::Type("true or false")),
        }
    }

    fn evaluate(&self, variable: &str, value: &Value) -> Result<cel::Value, Failed> {
        let mut context = Context::with_env(Arc::new(environment()?));
        context.add_variable_from_value(variable.to_owned(), in_cel(value));
        self.program.execute(&context).map_err(|error| match error {
            ExecutionError::NoSuchKey(name) => Failed::Missing(name.to_string()),
            _ => Failed::Other,
        })
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl TryFrom<String> for Expression {
    type Error = Unusable;

    fn try_from(text: String) -> Result<Self, Unusable> {
        if text.contains("__") {
            return Err(Unusable::Escaped { text });
        }
        let syntax = |problem: String| Unusable::Syntax {
            text: text.clone(),
            problem,
        };
        let environment = environment().map_err(|error| syntax(error.to_string()))?;
        let compiled = environment.compile(&text);
        let program = compiled.map_err(|errors| syntax(errors.to_string()))?;
        let foreign = |name: &&str| is_named(name) && !FUNCTIONS.contains(name);
        let references = program.references();
        let foreign = references.functions().into_iter().find(foreign);
        let foreign = foreign.map(str::to_owned);
        match foreign {
            Some(function) => Err(Unusable::Function { text, function }),
            None => Ok(Self {
                text,
                program: Arc::new(program),
            }),
        }
    }
}

/// Whether a function is called by a name. Operators and what macros expand to are not.
fn is_named(function: &str) -> bool {
    function.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

fn environment() -> Result<Env, Failed> {
    let mut environment = Env::stdlib();
    let added = environment.add_extension(cel::extensions::strings);
    added.map_err(|_| Failed::Other)?;
    Ok(environment)
}

/// A value of JSON in CEL. Every number is a double, as in the API server, which reads JSON by Go's rules.
fn in_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => number.as_f64().map_or(cel::Value::Null, cel::Value::Float),
        Value::String(text) => cel::Value::from(text.as_str()),
        Value::Array(all) => cel::Value::List(Arc::new(all.iter().map(in_cel).collect())),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), in_cel(value)));
            cel::Value::from(fields.collect::<HashMap<_, _>>())
        }
    }
}
