// PL3: a page that is larger than PART_BYTES_MAX on the wire travels in parts: slices of its compressed bytes, each of
// which can be requested again. The first answer carries part 0 and this header; the others are GET
// desired?transfer=ID&part=N. TRANSFER_MS after the last new part, or when a revision in it was withdrawn, a part is
// answered 410 `transfer_gone` and the agent starts over from its cursor. No part has a content-encoding, because none
// can be read alone: the first byte of the whole shows whether it is zstd (`{` is an uncompressed page).
export const TRANSFER_HEADER = 'skerry-transfer'
export const TRANSFER_MS = 600_000
/** `slice=BYTES` of GET desired and POST desired/buckets: an agent whose link cuts even one part asks for smaller ones,
 *  also of a page that would travel whole. From SLICE_BYTES_MIN to PART_BYTES_MAX; the server takes the nearest it can.
 */
export const SLICE_PARAM = 'slice'
export const SLICE_BYTES_MIN = 16 * 1_024

export interface TransferHead {
  /** 22 characters, base64url of 128 random bits. */
  id: string
  parts: number
  /** The size of all parts together. */
  bytes: number
}

export const transferText = ({ id, parts, bytes }: TransferHead): string => `${id}.${parts}.${bytes}`

/** Null when the text is none; at most `bytesMax` in all. */
export function parseTransfer(text: string, bytesMax: number): TransferHead | null {
  const match = /^([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,5})\.([1-9][0-9]{0,11})$/.exec(text)
  const [id, parts, bytes] = [match?.[1], Number(match?.[2]), Number(match?.[3])]
  return id !== undefined && parts >= 2 && bytes <= bytesMax ? { id, parts, bytes } : null
}
