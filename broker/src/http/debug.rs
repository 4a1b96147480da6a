//! What is under `/debug/`: whether the port answers. Profiles and variables of a Go process, which
//! Gazette has there, have no counterpart.

use super::{Problem, line};
use http::{Response, StatusCode};
use tonic::body::Body;

/// Answers a path under `/debug/`. Open to everybody: those who probe have no token.
pub fn answer(path: &str) -> Response<Body> {
    match path {
        "/debug/ready" => line(StatusCode::OK, "ready".to_owned()),
        other => {
            let text = format!("no such page: {other} (expected /debug/ready or /debug/metrics)");
            Problem { code: StatusCode::NOT_FOUND, text }.into()
        }
    }
}
