//! What an operator's log says of refused layout writes.

use onewriter_history::Log;
use serde::Deserialize;

/// Message of the line with which an operator logs that its guard refused a layout write.
const REFUSED: &str = "layout write blocked";
/// Message of the line with which a new process of the operator begins; its counters begin anew with it.
const UP: &str = "garage-operator is up";
/// The program whose log is read.
pub const OPERATOR: &str = "operator";

/// What a line of an operator's log tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFact {
    /// A layout write was refused.
    Refused {
        /// Namespace of the cluster.
        namespace: String,
        /// Name of the cluster.
        cluster: String,
        /// The operation: one of the six guarded methods.
        operation: String,
    },
    /// A process of the operator has begun.
    Up,
}

#[derive(Deserialize)]
struct Line<'a> {
    message: &'a str,
    #[serde(default)]
    cluster: Option<&'a str>,
    #[serde(default)]
    operation: Option<&'a str>,
}

impl LogFact {
    /// What `log` tells, if it is a structured line of an operator that tells something.
    #[must_use]
    pub fn of(log: &Log) -> Option<Self> {
        if log.program != OPERATOR || !(log.line.contains(REFUSED) || log.line.contains(UP)) {
            return None;
        }
        let line: Line<'_> = serde_json::from_str(&log.line).ok()?;
        match line.message {
            UP => Some(Self::Up),
            REFUSED => {
                let (namespace, cluster) = line.cluster?.split_once('/')?;
                Some(Self::Refused {
                    namespace: namespace.to_owned(),
                    cluster: cluster.to_owned(),
                    operation: line.operation?.to_owned(),
                })
            }
            _ => None,
        }
    }
}

/// Whether `log` is a structured line of an operator, so that what it would log can be read.
#[must_use]
pub fn is_structured(log: &Log) -> bool {
    log.program == OPERATOR && log.line.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(program: &str, line: &str) -> Option<LogFact> {
        LogFact::of(&Log { site: Some("east".into()), program: program.into(), line: line.into() })
    }

    const LINE: &str = r#"{"timestamp":"2026-01-01T00:00:00.000001Z","level":"INFO","message":"layout write blocked","cluster":"ns/garage","operation":"UpdateClusterLayout","reason":"r","target":"t"}"#;

    #[test]
    fn a_refusal_names_cluster_and_operation() {
        let refused = LogFact::Refused {
            namespace: "ns".into(),
            cluster: "garage".into(),
            operation: "UpdateClusterLayout".into(),
        };
        assert_eq!(fact("operator", LINE), Some(refused));
    }

    #[test]
    fn other_programs_and_other_lines_tell_nothing() {
        assert_eq!(fact("garage east/ns/garage-0", LINE), None);
        assert_eq!(fact("operator", "layout write blocked"), None);
        assert_eq!(fact("operator", r#"{"message":"the layout write blocked nobody"}"#), None);
        assert_eq!(fact("operator", r#"{"message":"garage-operator is up"}"#), Some(LogFact::Up));
    }
}
