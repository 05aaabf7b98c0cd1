import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { cleanMappings, dropCodePages } from '../../shared/adapters/code-pages.ts'

const mapping = (range: string, access: string, path: string, rssKb: number, anonymousKb: number): string =>
  `${range} ${access} 00000000 08:01 42                         ${path}
Size:               1000 kB
Rss:                ${String(rssKb).padStart(4)} kB
Pss:                   1 kB
Anonymous:          ${String(anonymousKb).padStart(4)} kB
AnonHugePages:         0 kB
VmFlags: rd mr mw me
`

const NONE: Array<ReturnType<typeof cleanMappings>[number]> = []

test.each([
  ['its data', mapping('200000-300000', 'r--p', '/bin/agent', 8, 0), [{ address: 0x200000, bytes: 0x100000, residentBytes: 8_192 }]],
  ['its code', mapping('200000-300000', 'r-xp', '/bin/agent', 8, 0), [{ address: 0x200000, bytes: 0x100000, residentBytes: 8_192 }]],
  ['what is not in memory', mapping('200000-300000', 'r-xp', '/bin/agent', 0, 0), NONE],
  ['a relocated page', mapping('200000-300000', 'r--p', '/bin/agent', 8, 4), NONE],
  ['what can be written', mapping('200000-300000', 'rw-p', '/bin/agent', 8, 0), NONE],
  ['what is shared', mapping('200000-300000', 'r--s', '/bin/agent', 8, 0), NONE],
  ['another file', mapping('200000-300000', 'r-xp', '/lib/libc.so.6', 8, 0), NONE],
  ['a file whose name begins alike', mapping('200000-300000', 'r-xp', '/bin/agent.old', 8, 0), NONE],
  ['memory without a file', '200000-300000 rw-p 00000000 00:00 0 \nRss: 8 kB\nAnonymous: 8 kB\n', NONE],
])('only pages of the program that are as in its file are let go: %s', (_, smaps, expected) => {
  const around = mapping('100000-180000', 'r-xp', '/other', 4, 4)
  expect(cleanMappings(around + smaps + around, '/bin/agent')).toEqual(expected)
})

test('the code of this very process is let go, and it goes on', () => {
  const resident = () => Number(/RssFile:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) * 1_024
  const before = resident()
  const dropped = dropCodePages()
  expect(dropped).toBeGreaterThan(10_000_000)
  expect(resident()).toBeLessThan(before - dropped / 2)
  expect(JSON.parse(JSON.stringify({ still: new Map([['a', 1]]).get('a') }))).toEqual({ still: 1 })
})
