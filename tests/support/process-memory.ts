// The memory of another process of the same user (Linux): all pages that it holds, searched for texts.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const PAGE = 4_096
/** Of `pagemap`: the page is in memory, or in swap space. */
const HELD = 0b1100_0000
const PAGES_AT_ONCE = 4_096

/** Texts that are in it, as 8-bit or 16-bit characters. Throws where it cannot be read. */
export function textsInMemory(pid: number, texts: readonly string[]): string[] {
  const forms = texts.flatMap((text) => [Buffer.from(text), Buffer.from(text, 'utf16le')].map((form) => ({ text, form })))
  const longest = Math.max(...forms.map(({ form }) => form.length))
  const found = new Set<string>()
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  const pagemap = openSync(`/proc/${pid}/pagemap`, 'r')
  try {
    for (const { start, pages } of heldRuns(pid, pagemap)) {
      let tail = Buffer.alloc(0)
      for (let page = 0; page < pages; page += PAGES_AT_ONCE) {
        const bytes = Buffer.alloc(Math.min(PAGES_AT_ONCE, pages - page) * PAGE)
        const count = readOrNothing(memory, bytes, start + page * PAGE)
        const all = Buffer.concat([tail, bytes.subarray(0, count)])
        for (const { text, form } of forms) if (all.includes(form)) found.add(text)
        tail = all.subarray(Math.max(0, all.length - longest))
      }
    }
  } finally {
    closeSync(memory)
    closeSync(pagemap)
  }
  return [...found]
}

/** Pages in a row that hold something; reserved address space is much larger. */
function* heldRuns(pid: number, pagemap: number): Generator<{ start: number; pages: number }> {
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
    if (from === '') continue
    const [first, end] = [Number.parseInt(from, 16) / PAGE, Number.parseInt(to, 16) / PAGE]
    let run: { start: number; pages: number } | null = null
    for (let page = first; page < end; page += PAGES_AT_ONCE) {
      const entries = Buffer.alloc(Math.min(PAGES_AT_ONCE, end - page) * 8)
      const count = readOrNothing(pagemap, entries, page * 8) / 8
      for (let index = 0; index < count; index++) {
        const isHeld = ((entries[index * 8 + 7] ?? 0) & HELD) !== 0
        if (isHeld && run === null) run = { start: (page + index) * PAGE, pages: 0 }
        if (isHeld && run !== null) run.pages++
        if (!isHeld && run !== null) {
          yield run
          run = null
        }
      }
    }
    if (run !== null) yield run
  }
}

/** The process may give a page back meanwhile. */
function readOrNothing(file: number, bytes: Buffer, at: number): number {
  try {
    return readSync(file, bytes, 0, bytes.length, at)
  } catch {
    return 0
  }
}
