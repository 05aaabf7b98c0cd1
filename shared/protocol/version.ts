// The agent protocol as two numbers and a line a version. A receiver learns a change one release before anyone sends it.
//   1  2026-11  first version
/** The version this build speaks. */
export const PROTOCOL_VERSION = 1
/** The lowest version a server of this build still serves (PL11). */
export const MIN_SUPPORTED_PROTOCOL_VERSION = 1
/** Rides on every agent request; absent means 1. */
export const PROTOCOL_HEADER = 'skerry-protocol'
