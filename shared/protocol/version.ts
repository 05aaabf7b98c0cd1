// The agent protocol as two numbers and a line a version. A receiver learns a change one release before anyone sends
// it.
//   1  2026-11  first version
//   2  2026-11  a join names its token and proves it by HMAC (JN7); the plain token of version 1 is taken as long as
// version 1 is served.
//               A poll may ask for a signed head (PL14), which version 1 leaves out. A session is asked for with a
// challenge, over which a
//               removal is signed (SE8); an older server signs none, so that a removed agent stops when that server is
// upgraded.
/** The protocol version of this build. */
export const PROTOCOL_VERSION = 2
/** The lowest version a server of this build still serves (PL11). */
export const MIN_SUPPORTED_PROTOCOL_VERSION = 1
/**
 * Sent with every agent request without a session; absent means 1. A request with a session uses the version in which
 * the session was opened.
 */
export const PROTOCOL_HEADER = 'skerry-protocol'
