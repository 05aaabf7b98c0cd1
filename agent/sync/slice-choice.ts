// Chooses the size of the parts of a page for this link. Pure. One interruption may be chance. A part that is
// interrupted twice in a row is too large for the link, and smaller ones are requested until whole pages have arrived
// again.
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { SLICE_BYTES_MIN } from '../../shared/protocol/transfer.ts'

export interface SliceChoice {
  /** Null if the server may choose. */
  bytes: number | null
  cutsInARow: number
  /** Most bytes that arrived before an interruption, of those in a row. */
  most: number
}

export const anySlice: SliceChoice = { bytes: null, cutsInARow: 0, most: 0 }

/** An answer was interrupted; `received`: the read bytes of its body. */
export function sliceAfterCut({ bytes, cutsInARow, most }: SliceChoice, received: number): SliceChoice {
  const reached = Math.max(most, received)
  if (cutsInARow + 1 < 2) return { bytes, cutsInARow: cutsInARow + 1, most: reached }
  const fits = 2 ** Math.floor(Math.log2(Math.max(1, reached * 0.75)))
  return { bytes: Math.max(SLICE_BYTES_MIN, Math.min(fits, (bytes ?? Number.POSITIVE_INFINITY) / 2)), cutsInARow: 0, most: 0 }
}

export const sliceAfterPiece = (choice: SliceChoice): SliceChoice => ({ ...choice, cutsInARow: 0, most: 0 })

/** A whole page arrived: the link may be better now. */
export function sliceAfterPage({ bytes }: SliceChoice): SliceChoice {
  return bytes === null || bytes * 2 >= PART_BYTES_MAX ? anySlice : { ...anySlice, bytes: bytes * 2 }
}
