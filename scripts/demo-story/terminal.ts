// The output of the demo: one line for a step, with its time at the right end of a live line.
const colour = process.stdout.isTTY && !process.env['NO_COLOR']
const paint = (code: string) => (text: string) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text)
export const dim = paint('2')
export const bold = paint('1')
const good = paint('32')
const bad = paint('31')

const write = (text: string) => process.stdout.write(text)

export const say = (text = ''): void => void write(`${text}\n`)
export const chapter = (title: string): void => say(`\n${bold(title)}`)
export const note = (text: string): void => say(dim(`      ${text}`))

/** `1 service`, `2 services`. */
export const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`

export const seconds = (ms: number): string =>
  ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`
export const bytes = (count: number): string => (count < 10_000 ? `${count} bytes` : `${(count / 1_024).toFixed(1)} KiB`)

/** Runs a step and shows it. What `work` answers is the end of the line; the time shown is its own measurement or that
 *  of the whole step. */
export async function step(
  title: string,
  work: (progress: (text: string) => void) => Promise<{ text?: string; ms?: number }>,
): Promise<void> {
  const started = performance.now()
  const live = process.stdout.isTTY
  const show = (text: string) => live && write(`\r\x1b[2K  …   ${title} ${dim(text)}`)
  show('')
  try {
    const { text = '', ms = performance.now() - started } = await work(show)
    write(`${live ? '\r\x1b[2K' : ''}  ${good('✓')}   ${title}${text === '' ? '' : ` ${text}`}  ${dim(seconds(ms))}\n`)
  } catch (error) {
    write(`${live ? '\r\x1b[2K' : ''}  ${bad('✗')}   ${title}  ${dim(seconds(performance.now() - started))}\n`)
    throw error
  }
}
