//! Network interfaces by name.

use crate::kernel;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use rustix::net::{AddressFamily, SocketType, socket};
use std::fmt;
use std::io;
use std::str::FromStr;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("invalid Ethernet address '{text}': expected such as 02:00:5e:10:00:01");
        let parts: Vec<u8> = text
            .split(':')
            .map(|part| match part.len() {
                2 if !part.starts_with('+') => u8::from_str_radix(part, 16).map_err(|_| wrong()),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()?;
        let bytes = <[u8; 6]>::try_from(parts).map_err(|_| wrong())?;
        if bytes[0] & 1 != 0 {
            return Err(format!("'{text}' is a group address; give the address of one interface"));
        }
        Ok(Self(bytes))
    }
}

/// An interface that carries Ethernet frames.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The address that a packet socket binds to.
    pub(crate) link: LinkAddr,
    /// Ethernet address; all bytes are zero on `lo`.
    pub mac: Mac,
    /// The largest payload of a frame, in bytes.
    pub mtu: usize,
    /// Whether this is the loopback interface, which returns every sent frame.
    pub is_loopback: bool,
}

impl Interface {
    /// Interface index (netdevice(7)).
    pub fn index(&self) -> u32 {
        self.link.ifindex() as u32
    }

    /// The interface `name` in the network namespace of this thread.
    ///
    /// # Errors
    /// A sentence: there is no such interface, it is down, or it is not an Ethernet interface.
    pub fn find(name: &str) -> io::Result<Self> {
        let all: Vec<_> = getifaddrs()?
            .filter_map(|found| Some((found.address?.as_link_addr().copied()?, found)))
            .collect();
        let Some((link, found)) = all.iter().find(|(_, found)| found.interface_name == name) else {
            let names: Vec<&str> = all.iter().map(|(_, found)| &*found.interface_name).collect();
            let message = format!("no interface '{name}'; available are {}", names.join(", "));
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let refuse = |why: &str| {
            let message = format!("interface {name} {why}");
            io::Error::other(message)
        };
        if !found.flags.contains(InterfaceFlags::IFF_UP) {
            return Err(refuse("is down; set it up with `ip link set dev NAME up`"));
        }
        let (6, Some(mac)) = (link.halen(), link.addr()) else {
            return Err(refuse("is not an Ethernet interface"));
        };
        let is_loopback = found.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        // A socket, because `/sys` shows the network namespace of its mount, not of this thread.
        let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
        Ok(Self { link: *link, mac: Mac(mac), mtu: kernel::mtu(any, name)?, is_loopback })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let mac: Mac = "02:00:5E:10:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        for wrong in [
            "",
            "02:00:5e:10:00",
            "02:00:5e:10:00:01:02",
            "2:0:5e:10:0:1",
            "0g:00:5e:10:00:01",
            "02:00:5e:10:00:+1",
        ] {
            let error = wrong.parse::<Mac>().unwrap_err();
            assert!(error.contains("invalid Ethernet address"), "{wrong}: {error}");
        }
        assert!("ff:ff:ff:ff:ff:ff".parse::<Mac>().unwrap_err().contains("group address"));
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_with_those_that_are() {
        let error = Interface::find("nosuch0").unwrap_err().to_string();
        assert!(error.contains("'nosuch0'") && error.contains("lo"), "{error}");
    }

    #[test]
    fn the_loop_has_an_mtu() {
        let lo = Interface::find("lo");
        match lo {
            Ok(lo) => assert!(lo.is_loopback && lo.mtu >= 1500 && lo.mac == Mac::default()),
            Err(error) => assert!(error.to_string().contains("down"), "{error}"),
        }
    }
}
