// Pages of the program's own file that a process has used stay counted as its memory, although the kernel could drop
// them at any time: half of an agent's memory is code that ran once, at its start. Unmapped pages are read again from
// the page cache when needed, a microsecond a page; only pages in use return. Linux only. Without FFI or in a sandbox
// the pages stay, without another effect.
import { dlopen, FFIType } from 'bun:ffi'
import { readFileSync, readlinkSync } from 'node:fs'

const MADV_DONTNEED = 4

interface Mapping {
  address: number
  bytes: number
  residentBytes: number
}

const HEAD = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+\s+(.*)$/

/** Mappings of `program` in the text of /proc/self/smaps of which nothing can be lost: not writable, and no page
 *  differs from the file (the loader's relocations do, and a debugger's breakpoints). */
export function cleanMappings(smaps: string, program: string): Mapping[] {
  const found: Mapping[] = []
  let mapping: Mapping | null = null
  for (const line of smaps.split('\n')) {
    const head = HEAD.exec(line)
    if (head !== null) {
      const [, from = '', to = '', access = '', path] = head
      const address = Number.parseInt(from, 16)
      mapping =
        path === program && /^r-[-x]p$/.test(access) ? { address, bytes: Number.parseInt(to, 16) - address, residentBytes: 0 } : null
      continue
    }
    if (mapping === null) continue
    const [, field, kB] = /^(Rss|Anonymous): +(\d+) kB$/.exec(line) ?? []
    if (field === 'Rss') mapping.residentBytes = Number(kB) * 1_024
    if (field !== 'Anonymous') continue
    if (Number(kB) === 0 && mapping.residentBytes > 0) found.push(mapping)
    mapping = null
  }
  return found
}

/** How many bytes are not counted any more. */
export function dropCodePages(): number {
  try {
    const mappings = cleanMappings(readFileSync('/proc/self/smaps', 'utf8'), readlinkSync('/proc/self/exe'))
    const libc = dlopen('libc.so.6', { madvise: { args: [FFIType.u64, FFIType.u64, FFIType.i32], returns: FFIType.i32 } })
    const { madvise } = libc.symbols
    const dropped = mappings.filter(({ address, bytes }) => madvise(BigInt(address), BigInt(bytes), MADV_DONTNEED) === 0)
    libc.close()
    return dropped.reduce((sum, { residentBytes }) => sum + residentBytes, 0)
  } catch {
    return 0
  }
}
