//! The report: one HTML page that opens from disk and loads nothing.
//!
//! | module | what it holds |
//! |---|---|
//! | [`page`] | the page from its parts; start here |
//! | [`sections`] | verdict, failures, matrix, checks and figures as HTML |
//! | [`lanes`] | which event belongs into which lane of the timeline, and under which label |
//! | [`index`] | the timeline's rows in columns, and the events in packed blocks |
//! | [`markup`] | escaping, and filling in templates |
//!
//! What the browser does with it is in `recording.js` (unpacking, filtering), `painting.js` (drawing) and
//! `timeline.js` (everything that people do).

pub mod index;
pub mod lanes;
pub mod markup;
pub mod page;
pub mod sections;

pub use page::{Page, RenderError, render};
