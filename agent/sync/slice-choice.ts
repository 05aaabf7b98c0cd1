// How large the pieces of a page may be on this link. Pure. One cut may be chance; a piece that is cut twice in a row is too large for the link, and smaller
// ones are asked for from then on, until whole pages have come through again.
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { SLICE_BYTES_MIN } from '../../shared/protocol/transfer.ts'

export interface SliceChoice {
  /** Null means: as the server likes. */
  bytes: number | null
  cutsInARow: number
  /** Most that came through before a cut, of the cuts in a row. */
  most: number
}

export const anySlice: SliceChoice = { bytes: null, cutsInARow: 0, most: 0 }

/** An answer broke off; `received`: what was read of its body. */
export function sliceAfterCut({ bytes, cutsInARow, most }: SliceChoice, received: number): SliceChoice {
  const reached = Math.max(most, received)
  if (cutsInARow + 1 < 2) return { bytes, cutsInARow: cutsInARow + 1, most: reached }
  const fits = 2 ** Math.floor(Math.log2(Math.max(1, reached * 0.75)))
  return { bytes: Math.max(SLICE_BYTES_MIN, Math.min(fits, (bytes ?? Number.POSITIVE_INFINITY) / 2)), cutsInARow: 0, most: 0 }
}

export const sliceAfterPiece = (choice: SliceChoice): SliceChoice => ({ ...choice, cutsInARow: 0, most: 0 })

/** A whole page came through: the link may be better by now. */
export function sliceAfterPage({ bytes }: SliceChoice): SliceChoice {
  return bytes === null || bytes * 2 >= PART_BYTES_MAX ? anySlice : { ...anySlice, bytes: bytes * 2 }
}
