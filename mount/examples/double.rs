//! Mounts journals in memory, to be tried from a shell: `double MOUNTPOINT [MIRROR_DIRECTORY]`.

use fs::double::Double;
use fs::{Filesystem, Options};
use mount::mountpoint::MountPoint;
use mount::{Settings, serve, stack_depth};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let point = PathBuf::from(arguments.next().ok_or("no mount point")?);
    let mirrors = arguments.next().map(PathBuf::from);

    let mut settings = Settings::default();
    let double = match mirrors {
        Some(directory) => {
            settings.stack_depth = stack_depth(&directory);
            Double::with_mirrors(directory)
        }
        None => Double::new(),
    };
    let mut options = Options::new([7; 16], SystemTime::UNIX_EPOCH);
    options.prefix = "try/".to_owned();
    options.allow_delete = std::env::var_os("ALLOW_DELETE").is_some();
    options.asynchronous = std::env::var_os("ASYNC").is_some();
    let fs = Filesystem::new(Arc::new(double), options);

    let runtime = tokio::runtime::Handle::current();
    let mut mounted = serve(MountPoint::claim(&point)?, fs, settings, runtime)?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        biased;
        () = mounted.ended() => {}
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    mounted.unmount();
    // Who was held hears of it before the runtime ends; files that are open do not keep us.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(3), mounted.ended()).await;
    Ok(())
}
