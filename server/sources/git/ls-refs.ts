// One request for what refs name: `ls-refs` of Git's protocol 2, asked without asking first what the server can. Bytes
// in, bytes out; null where something else answered.
import type { RemoteRef } from './objects.ts'

const FLUSH = '0000'
const DELIMITER = '0001'
/**
 * Only for statistics, by Git's protocol; but some services answer only agents that begin with `git/`, as other clients
 * do that are not git.
 */
export const GIT_AGENT = 'git/skerry'

const packet = (line: string): string => `${(Buffer.byteLength(line) + 4).toString(16).padStart(4, '0')}${line}`

/** Body of a request of protocol 2. `prefixes`: of full names of refs; none of them asks for all. */
export function askForRefs(prefixes: readonly string[]): Uint8Array<ArrayBuffer> {
  const command = [packet('command=ls-refs\n'), packet(`agent=${GIT_AGENT}\n`), packet('object-format=sha1'), DELIMITER, packet('peel\n')]
  const wanted = prefixes.map((prefix) => packet(`ref-prefix ${prefix}\n`))
  return new Uint8Array(Buffer.from([...command, ...wanted, FLUSH].join('')))
}

/** Null if it is not an answer of protocol 2. */
export function readRefs(answer: Uint8Array): RemoteRef[] | null {
  const bytes = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength)
  const refs: RemoteRef[] = []
  for (let at = 0; at + 4 <= bytes.length; ) {
    const head = bytes.toString('latin1', at, at + 4)
    if (head === FLUSH) return at + 4 === bytes.length ? refs : null
    const length = /^[0-9a-f]{4}$/.test(head) ? Number.parseInt(head, 16) : 0
    if (length < 4 || at + length > bytes.length) return null
    const match = /^([0-9a-f]{40}) (\S+)((?: [a-z-]+:\S+)*)\n?$/.exec(bytes.toString('utf8', at + 4, at + length))
    const [, oid = '', name = '', attributes = ''] = match ?? []
    if (match === null) return null
    refs.push({ name, oid, commit: / peeled:([0-9a-f]{40})/.exec(attributes)?.[1] ?? oid })
    at += length
  }
  return null
}
