// Jobs that read sources. Each names everything that it needs, so any worker can do it.
import { AppError } from '../../shared/runtime/error.ts'
import type { Source } from '../sources/source.ts'
import type { Sources } from '../sources/sources.ts'
import { isUpload } from '../sources/upload-source.ts'
import type { Jobs } from './worker.ts'

export type SourceJobs = Omit<Jobs, 'render' | 'helm.values' | 'object.origin' | 'tools.version' | 'patches.check' | 'texts.render'>

export function createSourceJobs(sources: Sources): SourceJobs {
  const looked = (source: Source, revision: string) => ({ value: { revision, tag: source.tagOf?.(revision) ?? null } })
  return {
    'source.head': async (key) => {
      const source = sources.open(key)
      return looked(source, await source.head())
    },
    'source.fetch': async (key) => {
      const source = sources.open(key)
      return looked(source, await source.fetch())
    },
    'source.has': async ({ key, revision }) => ({ value: { has: await sources.open(key).has(revision) } }),
    'source.open': async ({ key, revision, pick }) => {
      const { root, version } = await sources.open(key).open(revision, pick)
      return { value: { root, version } }
    },
    'source.note': async ({ key, revision }) => ({ value: { note: (await sources.open(key).noteOf?.(revision)) ?? null } }),
    'source.put': async ({ key, archive }) => {
      const source = sources.open(key)
      if (!isUpload(source)) throw new AppError('source_refused', { detail: 'only an upload accepts files' })
      return { value: { revision: await source.put(Buffer.from(archive, 'base64')) } }
    },
    'source.ids': async ({ at: { key, revision, pick }, paths }) => {
      const { tree } = await sources.open(key).open(revision, pick)
      const ids: Array<string | null | false> = []
      for (const path of paths) ids.push(await tree.id(path).catch(unlessUnexpected))
      return { value: { ids } }
    },
    'sources.removeOthers': async (key) => {
      await sources.removeOthers(key)
      return {}
    },
    'sources.forget': async ({ uid }) => {
      await sources.forget(uid)
      return {}
    },
  }
}

/** False means that the path cannot be read; the render that reads it tells why. */
function unlessUnexpected(error: unknown): false {
  if (error instanceof AppError) return false
  throw error
}
