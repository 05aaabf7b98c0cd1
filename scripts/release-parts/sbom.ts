// The bill of materials of a program or an image, in the format CycloneDX 1.6, and the texts of all licences in it.
// Pure.
import { createHash } from 'node:crypto'
import type { Part } from './part.ts'

export interface Subject {
  kind: 'application' | 'container'
  name: string
  version: string
  /** Digest of the file or the manifest, hexadecimal. */
  sha256: string
  seconds: number
}

const SPDX_ID = /^[A-Za-z0-9.+-]+$/

function licensesOf(license: string | null): object {
  if (license === null) return {}
  if (SPDX_ID.test(license)) return { licenses: [{ license: { id: license } }] }
  return / (OR|AND|WITH) /.test(license) && !license.includes(',')
    ? { licenses: [{ expression: license }] }
    : { licenses: [{ license: { name: license } }] }
}

/** An identifier that follows from the content, because the same build makes the same document. */
function serialOf(content: string): string {
  const hex = createHash('sha256').update(content).digest('hex')
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

export function sbomOf(subject: Subject, parts: readonly Part[]): object {
  const reference = `${subject.name}@${subject.version}`
  const components = parts.map(({ purl, name, version, license }) => ({
    ...{ type: 'library', 'bom-ref': purl, name, version, purl },
    ...licensesOf(license),
  }))
  const own = {
    ...{ type: subject.kind, 'bom-ref': reference, name: subject.name, version: subject.version },
    hashes: [{ alg: 'SHA-256', content: subject.sha256 }],
    licenses: [{ license: { id: 'Apache-2.0' } }],
  }
  return {
    ...{ bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber: serialOf(JSON.stringify([own, components])), version: 1 },
    metadata: {
      timestamp: new Date(subject.seconds * 1000).toISOString(),
      tools: { components: [{ type: 'application', name: 'scripts/release' }] },
      component: own,
    },
    components,
    dependencies: [{ ref: reference, dependsOn: parts.map(({ purl }) => purl) }],
  }
}

/** For a person: each part with its licence, then the texts, each once. */
export function licensesText(title: string, parts: readonly Part[]): string {
  const texts = new Map<string, string[]>()
  for (const { name, version, text } of parts)
    if (text !== null) texts.set(text.trim(), [...(texts.get(text.trim()) ?? []), `${name} ${version}`])
  const list = parts.map(({ name, version, license }) => `${name} ${version}: ${license ?? 'see its sources'}`)
  const bodies = [...texts].map(([text, names]) => `${'='.repeat(80)}\n${names.join('\n')}\n${'-'.repeat(80)}\n${text}\n`)
  return `${title} contains the following parts.\n\n${list.join('\n')}\n\n${bodies.join('\n')}`
}
