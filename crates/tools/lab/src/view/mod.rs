//! Documents of talkers and listeners as text, page and rows, one or several side by side.

mod compare;
mod overlay;
mod page;
mod rows;
mod text;

pub use compare::{read, text as compared};
pub(crate) use overlay::{distribution, figures};
pub use page::page;
pub use rows::Files;
pub use text::text;
pub(crate) use text::{cautions, findings, plain, share};
