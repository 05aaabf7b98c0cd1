// SO30: the accepted commits. A commit, or the annotated tag that leads to it, must be signed by one of the
// repository's keys; a refusal names the signer and the accepted keys.
import { AppError } from '../../../shared/runtime/error.ts'
import type { GitText } from './objects.ts'
import type { OpenPgpKey } from './openpgp.ts'
import { checkSshSignature, readSshKey, type SshKey } from './sshsig.ts'

/** Loaded when it is needed: few repositories ask for signatures, and it is the largest library of the server. */
const openPgp = () => import('./openpgp.ts')

export interface Keys {
  ssh: SshKey[]
  openPgp: OpenPgpKey[]
}

/** Throws `commit_unverified` for texts that are no keys: all of them, by their place in the list. */
export async function readKeys(texts: readonly string[]): Promise<Keys> {
  const keys: Keys = { ssh: [], openPgp: [] }
  const wrong: string[] = []
  for (const [at, text] of texts.entries()) {
    const place = `spec.git.verify.keys[${at}]`
    if (text.includes('-----BEGIN')) {
      const found = await (await openPgp()).readOpenPgpKeys(text)
      if (found === null) wrong.push(`${place} is not an armored OpenPGP public key`)
      else keys.openPgp.push(...found)
      continue
    }
    const lines = text.split('\n').flatMap((line) => (line.trim() === '' || line.trim().startsWith('#') ? [] : [line.trim()]))
    if (lines.length === 0) wrong.push(`${place} has no key`)
    for (const line of lines) {
      const key = readSshKey(line)
      if (typeof key === 'string') wrong.push(`${place}: ${key}`)
      else keys.ssh.push(key)
    }
  }
  if (wrong.length > 0) throw new AppError('commit_unverified', { detail: wrong.join('; '), remedy: 'Correct the keys of the repository.' })
  return keys
}

export interface Signed {
  payload: Uint8Array
  /** Null if there is none. */
  signature: string | null
}

export interface Candidate extends Pick<GitText, 'type'> {
  oid: string
  text: Uint8Array
}

/** `againMs`: from then on it may be good. Null means never. */
export class Unverified extends AppError {
  readonly againMs: number | null

  constructor(detail: string, againMs: number | null, remedy?: string) {
    super('commit_unverified', { detail, ...(remedy === undefined ? {} : { remedy }) })
    this.againMs = againMs
  }
}

/** The tags on the way, then the commit; one good signature is enough: answers what carries it. Throws `Unverified`. */
export async function verifyCommit(commit: string, candidates: readonly Candidate[], keys: Keys, nowMs: number): Promise<Candidate> {
  const refusals: string[] = []
  const againMs: number[] = []
  for (const candidate of candidates) {
    const { type, oid, text } = candidate
    const refusal = await refusalOf(type === 'tag' ? splitTag(text) : splitCommit(text), keys, nowMs)
    if (refusal === null) return candidate
    refusals.push(`${type} ${oid} ${refusal.why}`)
    if (refusal.againMs !== undefined) againMs.push(refusal.againMs)
  }
  const accepted = [...keys.openPgp, ...keys.ssh].map(({ fingerprint }) => fingerprint)
  const detail = `commit ${commit} is not rendered: ${refusals.join('; ')}. Accepted: ${accepted.join(', ')}`
  throw new Unverified(detail, againMs.length === 0 ? null : Math.min(...againMs))
}

interface Refusal {
  why: string
  againMs?: number | undefined
}

async function refusalOf({ payload, signature }: Signed, keys: Keys, nowMs: number): Promise<Refusal | null> {
  if (signature === null) return { why: 'is not signed' }
  if (signature.startsWith('-----BEGIN SSH SIGNATURE-----')) {
    const check = checkSshSignature(signature, payload, keys.ssh, nowMs)
    if (check.kind === 'good') return null
    const of = check.fingerprint === null ? '' : ` of ${check.fingerprint}`
    return { why: `carries an SSH signature${of}: ${check.why}`, againMs: check.againMs }
  }
  if (signature.startsWith('-----BEGIN PGP SIGNATURE-----') || signature.startsWith('-----BEGIN PGP MESSAGE-----')) {
    const check = await (await openPgp()).checkOpenPgpSignature(signature, payload, keys.openPgp, nowMs)
    if (check.kind === 'good') return null
    return {
      why: `carries an OpenPGP signature${check.signer === null ? '' : ` of ${check.signer}`}: ${check.why}`,
      againMs: check.againMs,
    }
  }
  return { why: 'has a signature of an unsupported type (X.509?); expected OpenPGP or SSH' }
}

/** A `gpgsig` head with its continued lines is the signature of all the rest; `gpgsig-sha256` is of another format of
 *  repositories, and never signed. */
export function splitCommit(text: Uint8Array): Signed {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const end = bytes.indexOf('\n\n')
  const heads = bytes.toString('latin1', 0, end < 0 ? bytes.length : end + 1)
  const kept: string[] = []
  const signatures: string[] = []
  let into: 'kept' | 'signature' | 'dropped' = 'kept'
  for (const line of heads.split('\n').slice(0, -1)) {
    if (!line.startsWith(' ')) into = line.startsWith('gpgsig ') ? 'signature' : line.startsWith('gpgsig-sha256 ') ? 'dropped' : 'kept'
    if (into === 'kept') kept.push(`${line}\n`)
    else if (into === 'signature' && line.startsWith(' ')) signatures.push(`${signatures.pop() ?? ''}${line.slice(1)}\n`)
    else if (into === 'signature') signatures.push(`${line.slice('gpgsig '.length)}\n`)
  }
  const [signature = null] = signatures
  const payload = Buffer.concat([Buffer.from(kept.join(''), 'latin1'), bytes.subarray(end < 0 ? bytes.length : end + 1)])
  // With two it would be undefined which one counts.
  return { payload, signature: signatures.length > 1 ? 'several' : signature }
}

/** At the end of a tag's message, from the last line that begins one. */
export function splitTag(text: Uint8Array): Signed {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  let at = -1
  for (const begin of [
    '-----BEGIN PGP SIGNATURE-----',
    '-----BEGIN SSH SIGNATURE-----',
    '-----BEGIN PGP MESSAGE-----',
    '-----BEGIN SIGNED MESSAGE-----',
  ])
    at = Math.max(at, bytes.lastIndexOf(`\n${begin}`))
  if (at < 0) return { payload: bytes, signature: null }
  return { payload: bytes.subarray(0, at + 1), signature: bytes.toString('latin1', at + 1) }
}
