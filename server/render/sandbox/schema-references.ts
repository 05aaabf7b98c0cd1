// The references that a values.schema.json may have where a program is not cut off from files and the network: helm
// would fetch or read whatever a reference names.

import { AppError } from '../../../shared/runtime/error.ts'
import { readArchive } from '../../sources/archive/archive.ts'
import type { SandboxRun } from '../sandbox.ts'

const REFERENCES = new Set(['$ref', '$dynamicRef', '$recursiveRef', '$schema'])
/** Programs contain these and fetch nothing. */
const KNOWN_DIALECT = /^https?:\/\/json-schema\.org\/(draft-0[467]|draft\/20(19-09|20-12))\/schema#?$/

const isValuesSchema = (path: string): boolean => /(^|\/)values\.schema\.json$/.test(path)

/** The first reference to a file or a host. Null means that there is none. Throws SyntaxError for what is no JSON. */
function foreignReference(text: string): string | null {
  const left: unknown[] = [JSON.parse(text)]
  for (let value = left.pop(); value !== undefined; value = left.pop()) {
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'object') left.push(member)
      else if (typeof member === 'string' && REFERENCES.has(name) && !member.startsWith('#') && !KNOWN_DIALECT.test(member)) return member
    }
  }
  return null
}

/** Packed charts in packed charts. */
const DEPTH_MAX = 8

/** SB18: also in packed charts, which helm opens by itself, kustomize's helm too. */
export async function refuseReferences({ program, args, files }: Pick<SandboxRun, 'program' | 'args' | 'files'>): Promise<void> {
  const opensCharts = program === 'helm' || program === 'helm3' || args.includes('--enable-helm')
  await refuseIn(files, '', opensCharts ? DEPTH_MAX : 0)
}

async function refuseIn(files: ReadonlyMap<string, Uint8Array>, inside: string, depth: number): Promise<void> {
  for (const [path, bytes] of files) {
    if (isValuesSchema(path)) refuseSchema(inside + path, bytes)
    // helm knows a packed chart by its content alone.
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b
    if (isPacked && depth > 0) await refuseIn(await unpacked(inside + path, bytes, depth), `${inside}${path}/`, depth - 1)
  }
}

async function unpacked(path: string, bytes: Uint8Array, depth: number): Promise<ReadonlyMap<string, Uint8Array>> {
  if (depth === 1) throw refused(path, `is compressed ${DEPTH_MAX} times`)
  try {
    return await readArchive(bytes)
  } catch (error) {
    throw refused(path, `cannot be decompressed (${error instanceof Error ? error.message : 'unreadable'})`)
  }
}

function refuseSchema(path: string, bytes: Uint8Array): void {
  let reference: string | null
  try {
    reference = foreignReference(new TextDecoder().decode(bytes))
  } catch {
    throw refused(path, 'not JSON')
  }
  if (reference !== null) throw refused(path, `refers to ${JSON.stringify(reference.slice(0, 200))}, which is not in this file`)
}

const refused = (path: string, detail: string): AppError =>
  new AppError('source_refused', {
    detail: `${path}: ${detail}, and this server runs with --render-sandbox limits`,
    remedy: 'Refer to definitions of the same file (#/$defs/…), or start the server with --render-sandbox bubblewrap.',
  })
