// The port to immutable content by SHA-256: rendered sets now, agent binaries later. What other sides write (packs,
// indexes, charts) stays in the folder of its source: it comes and goes by their will, and here nothing goes within a
// day. S3 goes behind the same port.
export interface ContentStore {
  /** Durable when it resolves; putting the same bytes again is nearly free. Returns the 64 hex digits. What was put
   *  counts as in use for an hour (ST12). */
  put(bytes: Uint8Array): Promise<string>
  /** Null when there is none; content that does not hash to its name is treated as missing. */
  get(sha256: string): Promise<Uint8Array | null>
  /** As if it had been put now: right before something begins to refer to it. False: it is not there, and has to be
   *  put. */
  refresh(sha256: string): Promise<boolean>
}
