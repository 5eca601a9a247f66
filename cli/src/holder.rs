//! Who runs the command, for the lock of a lake's state.

use crate::World;

/// Where Unix systems keep the machine's name.
const HOSTNAME_FILE: &str = "/etc/hostname";

/// `user@machine`: the same for every run of one person on one machine, so that a run can take up
/// the lock that an interrupted one left.
pub(crate) fn holder(world: &World) -> String {
    let first = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| (world.environment)(name))
            .find(|value| !value.is_empty())
    };
    let machine = || {
        let text = std::fs::read_to_string(HOSTNAME_FILE).ok()?;
        let name = text.trim();
        (!name.is_empty()).then(|| name.to_owned())
    };
    format!(
        "{}@{}",
        first(&["USER", "LOGNAME", "USERNAME"]).unwrap_or_else(|| "somebody".to_owned()),
        first(&["HOSTNAME", "COMPUTERNAME"])
            .or_else(machine)
            .unwrap_or_else(|| "somewhere".to_owned())
    )
}
