// Compares an air-gap bundle with its checksums, and their signature with a public key. Pure but for the reads.
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { BundleFile } from './bundle-file.ts'

export interface BundleCheck {
  files: number
  /** SHA-256 of the public key; null if only the checksums were compared. */
  signedBy: string | null
  problems: string[]
}

const [SUMS, SIGNATURE, KEY] = ['SHA256SUMS', 'SHA256SUMS.sig', 'skerry.pub']
/** Files that the checksums cannot name: the checksums themselves, and what is made after them. */
const WITHOUT_SUM = /^(SHA256SUMS(\.sig|\.sigstore\.json)?|skerry\.pub|skerry-airgap_\d[\w.+-]*\.tar(\.sha256|\.sig)?)$/
const TEXT_MAX = 1_048_576

/** `key`: null compares the checksums alone, which shows damage and no forgery. */
export function verifyBundle(files: readonly BundleFile[], key: KeyObject | null): BundleCheck {
  const byName = new Map(files.map((file) => [file.name, file]))
  const sums = byName.get(SUMS)
  if (sums === undefined) return { files: 0, signedBy: null, problems: [`${SUMS} is missing: this is no bundle of Skerry`] }
  const text = sums.text(TEXT_MAX)
  const problems: string[] = []
  if (key !== null) {
    const signature = byName.get(SIGNATURE)?.text(TEXT_MAX)
    if (signature === undefined) problems.push(`${SIGNATURE} is missing`)
    else if (!verify('sha256', Buffer.from(text), key, Buffer.from(signature, 'base64')))
      problems.push(`${SIGNATURE} is not a signature of this key: the bundle was changed, or it is signed with another key`)
  }
  const wanted = new Map<string, string>()
  for (const line of text.split('\n').filter(Boolean)) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]([^/\0]+)$/.exec(line) ?? []
    if (hash === undefined || name === undefined)
      problems.push(`${SUMS} has a line that is no checksum: ${JSON.stringify(line.slice(0, 100))}`)
    else wanted.set(name, hash)
  }
  for (const [name, hash] of wanted) {
    const file = byName.get(name)
    if (file === undefined) problems.push(`${name} is missing`)
    else if (file.sha256() !== hash) problems.push(`${name} is damaged or was changed`)
  }
  for (const { name } of files) if (!wanted.has(name) && !WITHOUT_SUM.test(name)) problems.push(`${name} is not in ${SUMS}`)
  return { files: wanted.size, signedBy: key === null ? null : fingerprintOf(key), problems }
}

export const fingerprintOf = (key: KeyObject): string =>
  `SHA256:${createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64')
    .replace(/=+$/, '')}`

/** Throws with words if the text is no public key in PEM. */
export function readPublicKey(pem: string): KeyObject {
  if (!pem.includes('-----BEGIN PUBLIC KEY-----')) throw new Error('expected a public key in PEM')
  const key = createPublicKey(pem)
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('expected an ECDSA key of the curve P-256')
  return key
}

/** The key that came with the bundle. It proves nothing by itself; a person compares its fingerprint. */
export function ownKeyOf(files: readonly BundleFile[]): string | null {
  const text = files.find(({ name }) => name === KEY)?.text(TEXT_MAX)
  try {
    return text === undefined ? null : fingerprintOf(readPublicKey(text))
  } catch {
    return null
  }
}
