// The text form of a revision: short commits and digests, versions of charts. Its parts are named as sources name them.
// Pure.

const CHART = /^(v?\d+\.\d+\.\d+\S*)(?: sha256:[0-9a-f]+)?$/
const DIGEST = /^(sha256:)?([0-9a-f]{64})$/

/** `6.5.2`, `sha256:ab12cd34`, `3f2c1a9b`. */
export function shortRevision(text: string, length = 8): string {
  const chart = CHART.exec(text)?.[1]
  if (chart !== undefined) return chart
  const [, prefix, hex] = DIGEST.exec(text) ?? []
  return hex === undefined || prefix === undefined ? text.slice(0, length) : `${prefix}${hex.slice(0, length)}`
}

/** `chart 6.5.2`, `artifact sha256:ab12cd34`, `commit 3f2c1a9b`. */
export function revisionWords(text: string, length = 8): string {
  const what = CHART.test(text) ? 'chart' : text.startsWith('sha256:') ? 'artifact' : 'commit'
  return `${what} ${shortRevision(text, length)}`
}
