//! The recorded history of a run: what happened, in one total order.
//!
//! A history is a JSON Lines file. Its first line is a [`Header`], every further line a [`Record`]: a gap-free
//! sequence number, two clocks, the source that saw the event, and the [`Event`] itself. A request and its answer
//! are two events, so that what was in flight at a crash stays visible.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`] | the kinds of events; start here |
//! | [`record`] | one line: order, clocks, source |
//! | [`header`] | the first line, and the schema's name |
//! | [`reader`] | reading a small file whole, and what can be wrong with one |
//! | [`stream`] | reading a file of any size, one event at a time |
//! | [`layout_state`] | what is told of a node's layout |
//! | [`mod@line`] | reading one line fast |
//! | [`entry`] | an event to append, as borrowed parts |
//! | [`writer`] | appending, so that a kill tears at most the last line |
//! | [`shared`] | appending from several threads, many lines in one write |
//! | [`clock`] | the two clocks |
//! | [`schema`] | the published JSON Schema |
//!
//! No secret is ever part of an event: tokens appear as labels, and bodies only of calls that carry none.

pub mod clock;
mod encode;
pub mod entry;
pub mod event;
pub mod header;
pub mod layout_state;
pub mod line;
pub mod reader;
pub mod record;
pub mod schema;
pub mod shared;
pub mod stream;
pub mod writer;

pub use clock::Moment;
pub use entry::{Beginning, Ending, Entry};
pub use event::{Audit, CallBegin, CallEnd, Event, Fault, Log, State, Step};
pub use header::{Header, SCHEMA};
pub use layout_state::{LayoutEventName, LayoutState};
pub use reader::{History, ReadError};
pub use record::{Record, Source};
pub use shared::SharedJournal;
pub use stream::Reader;
pub use writer::{Journal, WriteError};
