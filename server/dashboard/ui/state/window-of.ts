// Which rows of a long list are drawn: those in view and some around them. Pure.

export interface Range {
  /** The first drawn row. */
  from: number
  /** Behind the last drawn row. */
  to: number
}

/** Rows drawn before and after those in view, so that scrolling shows no gaps. */
export const AROUND = 12

/** `top`: of the list in the window; negative when it begins above. */
export function windowOf({
  top,
  viewHeight,
  rowHeight,
  count,
}: {
  top: number
  viewHeight: number
  rowHeight: number
  count: number
}): Range {
  const first = Math.floor(Math.max(0, -top) / rowHeight)
  const last = Math.ceil(Math.max(0, viewHeight - top) / rowHeight)
  const from = Math.max(0, Math.min(first - AROUND, count))
  return { from, to: Math.max(from, Math.min(last + AROUND, count)) }
}
