//! Living with a mount: what watches it, starts it, supervises it and asks for its state.

mod asking;
mod booting;
mod supervising;
mod unprivileged;
mod watching;
