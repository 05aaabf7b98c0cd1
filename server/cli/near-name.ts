// "Did you mean": a name that does not exist is answered with the nearest one that the caller may read.
import { z } from 'zod'
import { LIST_LIMIT_MAX } from '../../shared/model/constants.ts'
import { listOf } from '../../shared/model/list-page.ts'
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Context } from './context.ts'
import { KINDS, type Kind, parseTarget } from './kinds.ts'

const NAMED: readonly Kind[] = ['services', 'clusters', 'repositories']
/** Other texts are no names with a slip. */
const NAME = /^[a-z0-9][a-z0-9-]*$/
const named = z.object({ metadata: z.object({ name: z.string() }) })

interface Target {
  kind: string
  name: string | undefined
  project: string
}

/** The server leaves out of the list whatever the caller may not read, so no such name is suggested. */
export async function suggestingNames(context: Context, target: Target, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    const near = await nearName(context, target).catch(() => null)
    if (near === null) throw error
    throw new AppError(
      'not_found',
      { ...error.data, detail: `${error.data.detail ?? 'not found'}; did you mean "${near}"?` },
      { cause: error },
    )
  }
}

/** One page is read: of a large fleet the first names only. */
async function nearName(context: Context, target: Target): Promise<string | null> {
  const { kind, name } = parseTarget(target.kind, target.name, KINDS)
  if (name === undefined || !NAME.test(name) || !NAMED.includes(kind)) return null
  const query = { limit: LIST_LIMIT_MAX, ...(kind === 'clusters' ? {} : { project: target.project }) }
  const { items } = await context.client().get(`/${kind}`, listOf(named), query)
  const names = items.map(({ metadata }) => metadata.name)
  // A name that exists was not the one that is missing.
  return names.includes(name) ? null : nearest(name, names)
}
