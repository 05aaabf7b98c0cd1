// Row lines as they travel. What clusters share (the same service rolled out to a thousand of them) is compressed once:
// frames are kept by the SHA-256 of their lines, the least recently used go first.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { zstd } from '../../shared/runtime/zstd.ts'
import type { RowLines, SealedRow } from './row-lines.ts'

/** Lines shorter than this are compressed together with hello and checkpoint, unless several clusters get them. */
export const FRAME_BYTES_MIN = 4 * 1_024

export interface RowBody {
  /** The digest of the lines. */
  sha256: string
  bytes: Uint8Array
  /** `bytes` is a zstd frame of the lines. */
  packed: boolean
  /** Several clusters get these lines. */
  common: boolean
  /** Rows of the page whose keys go into its head. */
  sealed: readonly SealedRow[]
  /** Services of the page with bounds of a project. */
  bounded: number
  /** Rows of the page with SOPS documents. */
  sops: number
}

export interface RowFrames {
  body(lines: RowLines, zstd: boolean): RowBody
  /** How often something was compressed. */
  readonly compressions: number
}

export function createRowFrames(bytesMax: number): RowFrames {
  const frames = new Map<string, Uint8Array>()
  let bytes = 0
  let compressions = 0
  const pack = (sha256: string, lines: Uint8Array): Uint8Array => {
    const held = frames.get(sha256)
    const frame = held ?? zstd(lines)
    if (held === undefined) {
      compressions += 1
      bytes += frame.length
    }
    frames.delete(sha256)
    frames.set(sha256, frame)
    for (const [oldest, { length }] of frames) {
      if (bytes <= bytesMax) break
      frames.delete(oldest)
      bytes -= length
    }
    return frame
  }
  return {
    body({ bytes, recent, ...needs }, accepted) {
      const { sealed, bounded, sops } = needs
      const common = recent !== undefined && recent.writes > 1
      const packed = accepted && (common || bytes.length >= FRAME_BYTES_MIN)
      const sha256 = recent?.sha256 ?? sha256Hex(bytes)
      if (!packed) return { sha256, bytes, packed, common, sealed, bounded, sops }
      if (!common) return { sha256, bytes: pack(sha256, bytes), packed, common, sealed, bounded, sops }
      if (recent.frame === null) compressions += 1
      recent.frame ??= zstd(bytes)
      return { sha256, bytes: recent.frame, packed, common, sealed, bounded, sops }
    },
    get compressions() {
      return compressions
    },
  }
}
