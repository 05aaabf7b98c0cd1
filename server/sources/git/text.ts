// Git's own forms, read: modes, trees, heads of commits and tags. Bytes in, values out.

import type { CommitNote } from '../../../shared/model/commits.ts'
import type { SourceEntry } from '../source.ts'
import type { GitEntry, GitFolder } from './objects.ts'

/** With or without the zero that Git does not write. */
export function kindOfMode(mode: string): SourceEntry['kind'] {
  if (mode === '160000') return 'submodule'
  if (mode === '120000') return 'link'
  return mode === '40000' || mode === '040000' ? 'folder' : 'file'
}

/** `mode name NUL id`, again and again. Null means that it is no tree. */
export function readTree(bytes: Buffer): GitFolder | null {
  const folder = new Map<string, GitEntry>()
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const end = bytes.indexOf(0, space)
    if (space < 0 || end < 0 || end + 21 > bytes.length) return null
    const name = bytes.toString('utf8', space + 1, end)
    const oid = bytes.toString('hex', end + 1, end + 21)
    folder.set(name, { name, kind: kindOfMode(bytes.toString('latin1', at, space)), oid })
    at = end + 21
  }
  return folder
}

/** Reads the head before the message: the id behind `tree` of a commit, `object` of a tag. */
export function headId(text: Uint8Array, name: 'tree' | 'object'): string | null {
  const [line = ''] = new TextDecoder().decode(text.subarray(0, 64)).split('\n')
  const match = /^(tree|object) ([0-9a-f]{40})$/.exec(line)
  return match?.[1] === name ? (match[2] ?? null) : null
}

const AUTHOR_LENGTH_MAX = 200
/** The lines before the message of a commit are searched this far: a signature may stand among them, after the author.
 */
const AUTHOR_WITHIN_BYTES = 4_096

/** The name of the author, the first line of the message, and when it was written. */
export function commitNote(commit: Uint8Array): CommitNote {
  const text = new TextDecoder().decode(commit.subarray(0, NOTE_WITHIN_BYTES))
  const message = text.slice(text.indexOf('\n\n') + 2)
  const subject = (text.includes('\n\n') ? (message.trimStart().split('\n')[0] ?? '') : '').trim().slice(0, AUTHOR_LENGTH_MAX)
  const [, seconds] = /^author [^\n]*> (\d{1,11}) [+-]\d{4}$/m.exec(text.split('\n\n')[0] ?? '') ?? []
  return {
    author: authorName(commit),
    subject: subject === '' ? null : subject,
    authoredMs: seconds === undefined ? null : Number(seconds) * 1_000,
  }
}
/** A signature is 1 to 4 KiB, and stands before the message. */
const NOTE_WITHIN_BYTES = 16_384

/** `author Ana Example <ana@example.com> 1700000000 +0000` gives the name, or the address of an author without a name.
 *  Null means that there is no such line. */
export function authorName(commit: Uint8Array): string | null {
  const head = new TextDecoder().decode(commit.subarray(0, AUTHOR_WITHIN_BYTES)).split('\n\n')[0] ?? ''
  const [, name = '', address = ''] = /^author (.*?) ?<([^<>\n]*)>/m.exec(head) ?? []
  const author = (name.trim() || address.trim()).slice(0, AUTHOR_LENGTH_MAX)
  return author === '' ? null : author
}
