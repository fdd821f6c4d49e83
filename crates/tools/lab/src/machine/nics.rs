//! Network interfaces that could be given to a guest whole.

use super::{names, text};
use std::fs;
use std::path::Path;

/// An Ethernet controller on PCI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its address, such as `0000:03:00.0`.
    pub address: String,
    /// Its interfaces; none if its driver has none, as `vfio-pci`.
    pub interfaces: Vec<String>,
    /// Its IOMMU group: only a whole group can be given to a guest.
    pub group: Option<u32>,
    /// Whether the machine's default route goes through it.
    pub has_default_route: bool,
}

/// A NIC that this machine could give to a guest (Linux Documentation/driver-api/vfio.rst).
///
/// # Errors
/// A sentence that says what is missing.
pub fn vfio() -> Result<Nic, String> {
    let groups = names("/sys/kernel/iommu_groups").len();
    choose(nics(), groups, Path::new("/dev/vfio/vfio").exists())
}

fn choose(nics: Vec<Nic>, groups: usize, has_vfio: bool) -> Result<Nic, String> {
    let total = nics.len();
    let mut spare: Vec<Nic> = nics.into_iter().filter(|nic| !nic.has_default_route).collect();
    if spare.is_empty() {
        return Err(match total {
            0 => "vfio needs an Ethernet controller on PCI, and there is none".to_owned(),
            _ => "vfio needs an Ethernet controller on PCI besides that of the default route, and \
                  there is none"
                .to_owned(),
        });
    }
    let Some(index) = spare.iter().position(|nic| nic.group.is_some()).filter(|_| groups > 0)
    else {
        return Err("vfio needs an IOMMU, and the kernel has no group for a spare Ethernet \
                    controller: switch it on in the firmware, and with intel_iommu=on on the \
                    kernel's command line"
            .to_owned());
    };
    match has_vfio {
        true => Ok(spare.swap_remove(index)),
        false => Err("vfio needs /dev/vfio/vfio: load the module vfio-pci".to_owned()),
    }
}

fn nics() -> Vec<Nic> {
    let folder = Path::new("/sys/bus/pci/devices");
    let routes = default_routes(&text("/proc/net/route"), &text("/proc/net/ipv6_route"));
    let ethernet = names(folder).into_iter().filter(|address| {
        let class = text(folder.join(address).join("class"));
        is_ethernet(&class)
    });
    let nic = |address: String| {
        let interfaces = interfaces(&address);
        let group = fs::read_link(folder.join(&address).join("iommu_group")).ok();
        let group = group.and_then(|path| path.file_name()?.to_str()?.parse().ok());
        let has_default_route = interfaces.iter().any(|name| routes.contains(name));
        Nic { address, interfaces, group, has_default_route }
    };
    ethernet.map(nic).collect()
}

/// The interfaces behind a PCI device. Those of virtio lie one folder below it.
fn interfaces(address: &str) -> Vec<String> {
    let all = names("/sys/class/net").into_iter();
    let is_behind = |name: &String| {
        let path = fs::canonicalize(Path::new("/sys/class/net").join(name)).unwrap_or_default();
        path.iter().any(|part| part == address)
    };
    all.filter(is_behind).collect()
}

/// Whether a class is that of Ethernet controllers: 02h, subclass 00h (PCI Code and ID Assignment
/// Specification, section 1.3).
fn is_ethernet(class: &str) -> bool {
    class.starts_with("0x0200")
}

/// The interfaces of default routes: destination and prefix length 0 in `/proc/net/route` and
/// `/proc/net/ipv6_route` (Linux net/ipv4/fib_trie.c, net/ipv6/ip6_fib.c). The kernel's own entry
/// for what has no route is on `lo`.
fn default_routes(ipv4: &str, ipv6: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    // Interface, destination, gateway, flags, references, use, metric, mask.
    let old = ipv4
        .lines()
        .map(words)
        .filter(|fields| fields.len() > 7 && is_zero(&fields[1]) && is_zero(&fields[7]));
    let old = old.map(|fields| fields[0].clone());
    // Destination, its length, eight other fields; the interface is the last.
    let new = ipv6
        .lines()
        .map(words)
        .filter(|fields| fields.len() == 10 && is_zero(&fields[0]) && fields[1] == "00");
    let new = new.map(|fields| fields[9].clone()).filter(|name| name != "lo");
    old.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(address: &str, group: Option<u32>, has_default_route: bool) -> Nic {
        let interfaces = vec!["eth0".to_owned()];
        Nic { address: address.to_owned(), interfaces, group, has_default_route }
    }

    #[test]
    fn what_is_missing_is_said() {
        let says = |nics, groups, has_vfio, part: &str| {
            let error = choose(nics, groups, has_vfio).unwrap_err();
            assert!(error.contains(part), "no '{part}' in: {error}");
        };
        let spare =
            |group| vec![nic("0000:00:03.0", Some(1), true), nic("0000:04:00.0", group, false)];
        says(vec![], 0, true, "there is none");
        says(
            vec![nic("0000:00:03.0", Some(1), true)],
            2,
            true,
            "besides that of the default route",
        );
        says(spare(None), 2, true, "intel_iommu=on");
        says(spare(Some(2)), 0, true, "intel_iommu=on");
        says(spare(Some(2)), 2, false, "load the module vfio-pci");
        assert_eq!(choose(spare(Some(2)), 2, true).unwrap().address, "0000:04:00.0");
    }

    /// Of a virtual machine: `/proc/net/route`, and three lines of `/proc/net/ipv6_route`.
    #[test]
    fn default_routes_are_found() {
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let zero = "0".repeat(32);
        let ipv6 = format!(
            "fd{0} 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth2\n\
             {zero} 00 {zero} 00 fd{0} 00000400 00000003 00000000 00000003     eth3\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n",
            "0".repeat(30)
        );
        assert_eq!(default_routes(ipv4, &ipv6), ["eth0", "eth3"]);
    }

    #[test]
    fn only_ethernet_controllers_are_nics() {
        let classes = ["0x020000", "0x028000", "0x018000", ""];
        assert_eq!(classes.map(is_ethernet), [true, false, false, false]);
    }

    #[test]
    fn this_machine_has_a_nic_to_give_or_says_why_not() {
        match vfio() {
            Ok(nic) => assert!(nic.group.is_some() && !nic.has_default_route, "{nic:?}"),
            Err(why) => assert!(why.starts_with("vfio needs "), "{why}"),
        }
    }
}
