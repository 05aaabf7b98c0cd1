// The content store: whatever is referred to is there and hashes to its name; the rest is counted.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { parseRowId } from '../../shared/model/desired.ts'
import { isSealed, isSecretRow } from '../../shared/model/sealed-object.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { contentFilesIn } from '../store/content/content-files.ts'
import { asidePath, contentPath, isContentFolder, readContentName } from '../store/content/content-names.ts'
import { createFileContentStore } from '../store/content/file-content-store.ts'
import type { ContentReference } from '../store/engines/store-file.ts'
import type { Findings } from './findings.ts'

export interface CheckContentDeps {
  dataDir: string
  /** The references of a state of the store that is not older than a day (ST12). Null if the store cannot be read. */
  references: readonly ContentReference[] | null
  findings: Findings
  clock: Clock
  progress(what: string, done: number, of: number): void
}

const READS = 16

export async function checkContent(deps: CheckContentDeps): Promise<void> {
  const folder = join(deps.dataDir, 'content')
  const files = contentFilesIn(folder, deps.clock)
  const content = createFileContentStore(folder, deps.clock)
  const { references, findings } = deps
  for (let start = 0; references !== null && start < references.length; start += READS) {
    deps.progress('reading content', start, references.length)
    await Promise.all(
      references.slice(start, start + READS).map(async ({ sha256, of, desired }) => {
        const bytes = await content.get(sha256)
        if (bytes !== null) return tellClear(deps, contentPath(sha256), bytes)
        const found = (await files.read(contentPath(sha256))) ?? (await files.read(asidePath(sha256)))
        const as = found === null ? 'is missing' : `hashes to ${createHash('sha256').update(found).digest('hex').slice(0, 12)}…`
        const code = !desired ? 'content_past_lost' : found === null ? 'content_lost' : 'content_damaged'
        findings.tell(code, `content/${contentPath(sha256)} of ${of} ${as}`)
      }),
    )
  }
  await countFiles(deps, new Set(references?.map(({ sha256 }) => sha256)))
}

async function countFiles({ findings, references, dataDir, clock, progress }: CheckContentDeps, used: ReadonlySet<string>): Promise<void> {
  const files = contentFilesIn(join(dataDir, 'content'), clock)
  const counts = { content: 0, unused: 0, unusedBytes: 0, leftovers: 0 }
  const top = await files.list('')
  for (const [index, folder] of top.entries()) {
    progress('counting content', index, top.length)
    if (!isContentFolder(folder)) {
      findings.tell('content_foreign', `content/${folder}`)
      continue
    }
    for (const name of await files.list(folder)) {
      const read = readContentName(folder, name)
      if (read.kind === 'foreign') findings.tell('content_foreign', `content/${folder}/${name}`)
      else if (read.kind === 'temporary') counts.leftovers++
      else {
        counts.content++
        if (used.has(read.sha256)) continue
        counts.unused++
        counts.unusedBytes += (await files.stat(`${folder}/${name}`))?.bytes ?? 0
        tellClear({ findings }, `${folder}/${name}`, await files.read(`${folder}/${name}`))
      }
    }
  }
  findings.fact('contentFiles', counts.content)
  findings.fact('contentLeftovers', counts.leftovers)
  if (references === null) return
  findings.fact('contentUnused', counts.unused)
  findings.fact('contentUnusedBytes', counts.unusedBytes)
}

/** SL9: reports Secrets that are in clear. */
function tellClear({ findings }: Pick<CheckContentDeps, 'findings'>, path: string, bytes: Uint8Array | null): void {
  if (bytes === null) return
  let rows: ReadonlyMap<string, string>
  try {
    rows = decodeRenderedSet(bytes)
  } catch {
    return // not a set
  }
  for (const [id, doc] of rows) {
    const row = parseRowId(id)
    if (row.kind !== 'object' || !isSecretRow(row.id, id) || isSealed(doc)) continue
    findings.tell('secret_clear', `content/${path} of service ${serviceKey(row.id)}`)
    return
  }
}
