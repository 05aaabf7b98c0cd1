// Signatures by SSH keys, as `ssh-keygen -Y sign -n git` makes them (PROTOCOL.sshsig of OpenSSH). Checked against
// public keys of authorized_keys lines.
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

export interface SshKey {
  /** The public key as it stands in signatures, base64. */
  blob: string
  fingerprint: string
  /** Options at the begin of the line. Null means no such bound. */
  untilMs: number | null
  fromMs: number | null
}

/** `againMs`: from then on it may be good. */
export type SshCheck = { kind: 'good'; fingerprint: string } | { kind: 'bad'; fingerprint: string | null; why: string; againMs?: number }

const TYPES = ['ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521']
const CURVES: Readonly<Record<string, { name: string; hash: string; bytes: number }>> = {
  nistp256: { name: 'P-256', hash: 'sha256', bytes: 32 },
  nistp384: { name: 'P-384', hash: 'sha384', bytes: 48 },
  nistp521: { name: 'P-521', hash: 'sha512', bytes: 66 },
}
const RSA_HASHES: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' }
const RSA_BITS_MIN = 2_048
const NAMESPACE = 'git'

export const fingerprintOf = (blob: Buffer): string => `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`

/** Text: why the line is no key that can be used. */
export function readSshKey(line: string): SshKey | string {
  const match = /(?:^|\s)((?:ssh|ecdsa|sk)-[-a-z0-9@.]+)\s+([A-Za-z0-9+/]+=*)(?:\s|$)/.exec(line)
  if (match === null) return 'not an SSH public key'
  const [, type = '', base64 = ''] = match
  if (!TYPES.includes(type)) return `${type} is no kind of key that is checked; ${TYPES.join(', ')} are`
  const blob = Buffer.from(base64, 'base64')
  if (publicKey(blob) === null) return `an invalid ${type} key, or an RSA key of less than ${RSA_BITS_MIN} bits`
  const options = line.slice(0, match.index)
  if (/(^|[\s,])cert-authority([\s,]|$)/i.test(options)) return 'a certificate authority; list the keys themselves'
  const spaces = /namespaces="([^"]*)"/i.exec(options)?.[1]
  if (spaces !== undefined && !spaces.split(',').some((one) => one.trim() === NAMESPACE || one.trim() === '*'))
    return 'a key whose line does not allow git'
  const until = timeOf(/(?:expiry-time|valid-before)="?(\w+)"?/i.exec(options)?.[1])
  const from = timeOf(/valid-after="?(\w+)"?/i.exec(options)?.[1])
  if (Number.isNaN(until) || Number.isNaN(from)) return 'a key with an invalid time'
  return { blob: blob.toString('base64'), fingerprint: fingerprintOf(blob), untilMs: until, fromMs: from }
}

/** YYYYMMDD[HHMM[SS]], here always in UTC. */
function timeOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const [, year, month, day, hour = '00', minute = '00', second = '00'] = /^(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?Z?$/.exec(text) ?? []
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
}

/** `payload`: the commit or tag without its signature, which is `armored`. */
export function checkSshSignature(armored: string, payload: Uint8Array, keys: readonly SshKey[], nowMs: number): SshCheck {
  const parsed = readSignature(armored)
  if (typeof parsed === 'string') return { kind: 'bad', fingerprint: null, why: parsed }
  const fingerprint = fingerprintOf(parsed.key)
  const bad = (why: string) => ({ kind: 'bad' as const, fingerprint, why })
  if (parsed.namespace !== NAMESPACE) return bad('it was not created for git')
  const key = keys.find(({ blob }) => blob === parsed.key.toString('base64'))
  if (key === undefined) return bad('it belongs to another key')
  if (key.untilMs !== null && key.untilMs <= nowMs) return bad('the key has expired')
  if (key.fromMs !== null && key.fromMs > nowMs) return { ...bad('the key is not valid yet'), againMs: key.fromMs }
  const digest = createHash(parsed.hash).update(payload).digest()
  const signed = Buffer.concat([Buffer.from('SSHSIG'), field(parsed.namespace), field(''), field(parsed.hash), field(digest)])
  return isSignedBy(parsed.key, parsed.signature, signed) ? { kind: 'good', fingerprint } : bad('it does not match the commit')
}

interface Parsed {
  key: Buffer
  namespace: string
  hash: 'sha256' | 'sha512'
  signature: Buffer
}

function readSignature(armored: string): Parsed | string {
  const match = /^-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=\n]+)-----END SSH SIGNATURE-----\s*$/.exec(armored.replaceAll('\r', ''))
  const reader = new Reader(Buffer.from(match?.[1] ?? '', 'base64'))
  try {
    if (reader.take(6).toString('latin1') !== 'SSHSIG' || reader.uint32() !== 1) return 'it is not a valid SSH signature'
    const key = reader.field()
    const namespace = reader.field().toString()
    reader.field()
    const hash = reader.field().toString()
    const signature = reader.field()
    if (!reader.isAtEnd() || (hash !== 'sha256' && hash !== 'sha512')) return 'it is not a valid SSH signature'
    return { key, namespace, hash, signature }
  } catch {
    return 'it is not a valid SSH signature' // cut short
  }
}

function isSignedBy(blob: Buffer, signature: Buffer, signed: Buffer): boolean {
  const key = publicKey(blob)
  if (key === null) return false
  try {
    const type = new Reader(blob).field().toString()
    const reader = new Reader(signature)
    const algorithm = reader.field().toString()
    const value = reader.field()
    if (!reader.isAtEnd()) return false
    if (type === 'ssh-ed25519') return algorithm === type && verify(null, signed, key, value)
    if (type === 'ssh-rsa') {
      const hash = RSA_HASHES[algorithm] // SHA-1 is not among them
      return hash !== undefined && verify(hash, signed, key, value)
    }
    const curve = CURVES[type.replace('ecdsa-sha2-', '')]
    if (curve === undefined || algorithm !== type) return false
    const numbers = new Reader(value)
    const [r, s] = [numbers.number(curve.bytes), numbers.number(curve.bytes)]
    return numbers.isAtEnd() && verify(curve.hash, signed, { key, dsaEncoding: 'ieee-p1363' }, Buffer.concat([r, s]))
  } catch {
    return false // cut short, or numbers that are none of the key
  }
}

function publicKey(blob: Buffer): KeyObject | null {
  try {
    const reader = new Reader(blob)
    const type = reader.field().toString()
    const jwk = jwkOf(type, reader)
    if (jwk === null || !reader.isAtEnd()) return null
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return null // cut short, or no point of the curve
  }
}

function jwkOf(type: string, reader: Reader): Record<string, string> | null {
  if (type === 'ssh-ed25519') {
    const x = reader.field()
    return x.length === 32 ? { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') } : null
  }
  if (type === 'ssh-rsa') {
    const [e, n] = [withoutZeros(reader.field()), withoutZeros(reader.field())]
    return n.length * 8 < RSA_BITS_MIN ? null : { kty: 'RSA', e: e.toString('base64url'), n: n.toString('base64url') }
  }
  const curveName = reader.field().toString()
  const curve = CURVES[curveName]
  const point = reader.field()
  if (curve === undefined || type !== `ecdsa-sha2-${curveName}` || point.length !== 1 + 2 * curve.bytes || point[0] !== 4) return null
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return { kty: 'EC', crv: curve.name, x: x.toString('base64url'), y: y.toString('base64url') }
}

function withoutZeros(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? Buffer.alloc(0) : bytes.subarray(first)
}

function field(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** SSH's wire form; throws where it ends too early. */
class Reader {
  private readonly bytes: Buffer
  private at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  take(length: number): Buffer {
    if (this.at + length > this.bytes.length) throw new RangeError('cut short')
    this.at += length
    return this.bytes.subarray(this.at - length, this.at)
  }

  uint32(): number {
    return this.take(4).readUInt32BE()
  }

  field(): Buffer {
    return this.take(this.uint32())
  }

  /** Formats a number in that many bytes, with zeros before it. */
  number(bytes: number): Buffer {
    const value = withoutZeros(this.field())
    if (value.length > bytes) throw new RangeError('too large')
    return Buffer.concat([Buffer.alloc(bytes - value.length), value])
  }

  isAtEnd(): boolean {
    return this.at === this.bytes.length
  }
}
