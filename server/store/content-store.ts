// The port to immutable content by SHA-256: rendered sets now; packs, charts and agent binaries later. S3 goes behind the same port.
export interface ContentStore {
  /** Durable when it resolves; putting the same bytes again is free. Returns the 64 hex digits. */
  put(bytes: Uint8Array): Promise<string>
  /** Null when there is none; content that does not hash to its name is treated as missing. */
  get(sha256: string): Promise<Uint8Array | null>
}
