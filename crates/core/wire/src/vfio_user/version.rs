//! VFIO_USER_VERSION (specification, section of that name): the capabilities of both sides, as JSON
//! after two numbers.

use super::{Malformed, get16};
use serde_json::{Map, Value};

/// Default of `max_msg_fds`.
pub const DEFAULT_MAX_MSG_FDS: u64 = 1;

/// Default of `max_data_xfer_size` in bytes.
pub const DEFAULT_MAX_DATA_XFER_SIZE: u64 = 1 << 20;

/// The payload of the request and of its reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Major version; this protocol is 0.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// The version data; `None` when the message ends after the numbers, as from SPDK.
    pub capabilities: Option<Capabilities>,
}

/// The `capabilities` object. Missing entries are `None`; unknown names are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The maximum number of file descriptors that the sender accepts in one message.
    pub max_msg_fds: Option<u64>,
    /// The maximum number of data bytes that the sender accepts in one read or write message.
    pub max_data_xfer_size: Option<u64>,
    /// The maximum number of DMA ranges that can be mapped at the same time.
    pub max_dma_maps: Option<u64>,
    /// Page sizes for DMA ranges in bytes: the bitwise OR of all supported sizes.
    pub pgsizes: Option<u64>,
    /// Whether VFIO_USER_REGION_WRITE_MULTI is supported.
    pub write_multiple: Option<bool>,
    /// `twin_socket.supported`: the client supports a second socket for server-to-client commands.
    pub twin_socket: Option<bool>,
    /// Whether the `migration` object is present. Not in the specification; QEMU sends and reads
    /// it.
    pub migration: bool,
}

impl Capabilities {
    fn from_json(text: &[u8]) -> Result<Self, Malformed> {
        let value: Value = serde_json::from_slice(text).map_err(|_| Malformed::Json)?;
        let Value::Object(outer) = value else { return Err(Malformed::Json) };
        let inner = match outer.get("capabilities") {
            None => return Ok(Self::default()),
            Some(Value::Object(inner)) => inner,
            Some(_) => return Err(Malformed::Json),
        };
        let twin = match inner.get("twin_socket") {
            None => None,
            Some(Value::Object(twin)) => boolean(twin, "supported")?,
            Some(_) => return Err(Malformed::Json),
        };
        Ok(Self {
            max_msg_fds: number(inner, "max_msg_fds")?,
            max_data_xfer_size: number(inner, "max_data_xfer_size")?,
            max_dma_maps: number(inner, "max_dma_maps")?,
            pgsizes: number(inner, "pgsizes")?,
            write_multiple: boolean(inner, "write_multiple")?,
            twin_socket: twin,
            migration: inner.get("migration").is_some_and(Value::is_object),
        })
    }

    /// The capabilities as JSON without spaces. QEMU receives the reply in the buffer of the
    /// request, so a reply must not be longer than the request.
    fn to_json(&self) -> String {
        let mut inner = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                inner.insert(name.to_owned(), value);
            }
        };
        put("max_msg_fds", self.max_msg_fds.map(Value::from));
        put("max_data_xfer_size", self.max_data_xfer_size.map(Value::from));
        put("max_dma_maps", self.max_dma_maps.map(Value::from));
        put("pgsizes", self.pgsizes.map(Value::from));
        put("write_multiple", self.write_multiple.map(Value::from));
        put("twin_socket", self.twin_socket.map(|on| serde_json::json!({ "supported": on })));
        put("migration", self.migration.then(|| Value::Object(Map::new())));
        serde_json::json!({ "capabilities": inner }).to_string()
    }
}

fn number(object: &Map<String, Value>, name: &str) -> Result<Option<u64>, Malformed> {
    object.get(name).map(|value| value.as_u64().ok_or(Malformed::Json)).transpose()
}

fn boolean(object: &Map<String, Value>, name: &str) -> Result<Option<bool>, Malformed> {
    object.get(name).map(|value| value.as_bool().ok_or(Malformed::Json)).transpose()
}

impl Version {
    /// Decodes the payload of a request or of a reply. Version data ends at the first NUL, or
    /// without a NUL at the end of the payload.
    ///
    /// # Errors
    /// [`Malformed::Short`] below 4 bytes, [`Malformed::Json`] for version
    /// data that is not an object of the described shape.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let major = get16(bytes, 0)?;
        let minor = get16(bytes, 2)?;
        let text = bytes[4..].split(|byte| *byte == 0).next().unwrap_or_default();
        let capabilities =
            if text.is_empty() { None } else { Some(Capabilities::from_json(text)?) };
        Ok(Self { major, minor, capabilities })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.major.to_le_bytes());
        out.extend_from_slice(&self.minor.to_le_bytes());
        if let Some(capabilities) = &self.capabilities {
            out.extend_from_slice(capabilities.to_json().as_bytes());
            out.push(0);
        }
    }
}
